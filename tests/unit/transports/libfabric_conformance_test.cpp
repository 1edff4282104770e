// libfabric over TCP: by its own rules, and by those of EFA.
#if __has_include(<rdma/fabric.h>)

#include "tests/unit/transports/conformance.h"
#include "transports/libfabric/libfabric.h"

namespace shmemctl::test {
namespace {

NamedTransport over(const std::string& name, const std::string& provider,
                    const std::string& profile) {
  NamedTransport transport;
  transport.name = name;
  transport.make = make_libfabric_transport;
  transport.options = {{"LIBFABRIC_PROVIDER", provider}, {"LIBFABRIC_PROFILE", profile}};
  return transport;
}

INSTANTIATE_TEST_SUITE_P(Libfabric, Conformance,
                         testing::Values(over("libfabric_tcp", "tcp", ""),
                                         over("libfabric_tcp_efa", "tcp", "efa")),
                         by_name);

} // namespace
} // namespace shmemctl::test

#endif
