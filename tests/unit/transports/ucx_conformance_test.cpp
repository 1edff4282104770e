// UCX over TCP, over shared memory, and over the environment's choice.
#include "tests/unit/transports/conformance.h"
#include "transports/ucx/ucx.h"

namespace shmemctl::test {
namespace {

NamedTransport ucx(const std::string& name, const UcxSettings& settings) {
  NamedTransport transport;
  transport.name = name;
  transport.make = [settings](const TransportSetup& setup) {
    return make_ucx_transport(setup, settings);
  };
  return transport;
}

std::vector<NamedTransport> all_ways() {
  std::vector<NamedTransport> ways = {ucx("ucx_tcp", {{"TLS", "tcp,self"}}),
                                      ucx("ucx_shm", {{"TLS", "shm,self"}})};
  if (std::getenv("UCX_TLS") != nullptr)
    ways.push_back(ucx("ucx_environment", {}));
  return ways;
}

INSTANTIATE_TEST_SUITE_P(Ucx, Conformance, testing::ValuesIn(all_ways()), by_name);

} // namespace
} // namespace shmemctl::test
