// Loads and stores, over memory that threads share: shows that the suite itself is correct.
#include "tests/unit/transports/conformance.h"
#include "transports/shm/shm.h"

namespace shmemctl::test {
namespace {

NamedTransport shm() {
  NamedTransport transport;
  transport.name = "shm";
  transport.make = [](const TransportSetup&) { return make_shm_transport(); };
  transport.mapped_memory = true;
  return transport;
}

INSTANTIATE_TEST_SUITE_P(Shm, Conformance, testing::Values(shm()), by_name);

} // namespace
} // namespace shmemctl::test
