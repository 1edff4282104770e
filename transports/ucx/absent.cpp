// Replaces the transport in builds without the headers of UCX.
#include "transports/ucx/ucx.h"

#if !__has_include(<ucp/api/ucp.h>)

#include "transports/absent.h"

namespace shmemctl {

std::unique_ptr<Transport> make_ucx_transport(const TransportSetup&, const UcxSettings&) {
  return not_built(*find_transport("ucx"));
}

} // namespace shmemctl

#endif
