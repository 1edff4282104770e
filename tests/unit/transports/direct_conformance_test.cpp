// ibdevx and the host's side of ibgda over the HCA in software: over memory, and over other
// transports.
#include "tests/unit/transports/conformance.h"
#include "transports/direct/direct.h"
#include "transports/direct/direct_transport.h"

namespace shmemctl::test {
namespace {

NamedTransport over(const std::string& name, MakeTransport make, const std::string& carrier,
                    std::map<std::string, std::string> more = {}) {
  NamedTransport transport;
  transport.name = name;
  transport.make = std::move(make);
  transport.options = std::move(more);
  transport.options.insert({{"MLX5_DEVICE", "soft"}, {"SOFT_HCA_OVER", carrier}});
  transport.mapped_memory = carrier == "shm";
  return transport;
}

/// Two HCAs in this process, with queues that are as short as they can be.
NamedTransport two_nics() {
  return over(
      "ibgda_two_nics",
      [](const TransportSetup& setup) {
        direct::Settings settings = direct::read_settings(direct::Flavour::gda, *setup.options);
        settings.software_devices = 2;
        return std::make_unique<direct::DirectTransport>(setup, settings);
      },
      "shm", {{"QP_DEPTH", "128"}, {"IBGDA_NUM_RC_PER_PE", "3"}});
}

INSTANTIATE_TEST_SUITE_P(
    Direct, Conformance,
    testing::Values(over("ibdevx", make_ibdevx_transport, "shm"),
                    over("ibgda", make_ibgda_transport, "shm"), two_nics(),
                    over("ibdevx_over_ucx", make_ibdevx_transport, "ucx"),
                    over("ibgda_over_libfabric", make_ibgda_transport, "libfabric",
                         {{"LIBFABRIC_PROVIDER", "tcp"}})),
    by_name);

} // namespace
} // namespace shmemctl::test
