// Replaces the transport in builds without the headers of libfabric.
#if !__has_include(<rdma/fabric.h>)

#include "transports/absent.h"
#include "transports/libfabric/libfabric.h"
#include "transports/libfabric/probe.h"

namespace shmemctl {

namespace fabric {

std::optional<ProfileNeeds> needs_of(const std::string&) {
  return std::nullopt;
}

ProviderPresence probe_provider(const ProviderRequest&) {
  ProviderPresence presence;
  presence.problem = "this build has no libfabric: its headers were missing";
  presence.fix = "install libfabric-dev and build again";
  return presence;
}

} // namespace fabric

std::unique_ptr<Transport> make_libfabric_transport(const TransportSetup&) {
  return not_built(*find_transport("libfabric"));
}

} // namespace shmemctl

#endif
