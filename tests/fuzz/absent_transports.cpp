// Stands in for the transports in a build of fuzz targets without the runtime. The option table
// needs their names, which are those of the registry's rows; no target makes one.
#include "transports/absent.h"
#include "transports/ibdevx/ibdevx.h"
#include "transports/ibgda/ibgda.h"
#include "transports/ibrc/ibrc.h"
#include "transports/libfabric/libfabric.h"
#include "transports/ucx/ucx.h"

namespace shmemctl {

std::unique_ptr<Transport> make_ibrc_transport(const TransportSetup&) {
  return not_built(*find_transport("ibrc"));
}

std::unique_ptr<Transport> make_ibdevx_transport(const TransportSetup&) {
  return not_built(*find_transport("ibdevx"));
}

std::unique_ptr<Transport> make_ibgda_transport(const TransportSetup&) {
  return not_built(*find_transport("ibgda"));
}

std::unique_ptr<Transport> make_libfabric_transport(const TransportSetup&) {
  return not_built(*find_transport("libfabric"));
}

std::unique_ptr<Transport> make_ucx_transport(const TransportSetup&, const UcxSettings&) {
  return not_built(*find_transport("ucx"));
}

} // namespace shmemctl
