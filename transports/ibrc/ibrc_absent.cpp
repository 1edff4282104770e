// Replaces the transport in builds without the headers of libibverbs.
#if !__has_include(<infiniband/verbs.h>)

#include "transports/absent.h"
#include "transports/ibrc/ibrc.h"

namespace shmemctl {

std::unique_ptr<Transport> make_ibrc_transport(const TransportSetup&) {
  return not_built(*find_transport("ibrc"));
}

} // namespace shmemctl

#endif
