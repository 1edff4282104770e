// ibdevx and the host's side of ibgda over the emulated HCA: over memory, and over other
// transports.
#include "tests/support/fake_mlx5.h"
#include "tests/support/placement.h"
#include "tests/unit/transports/conformance.h"
#include "transports/ibdevx/ibdevx.h"
#include "transports/ibgda/ibgda.h"
#include "transports/mlx5/mlx5_transport.h"

namespace shmemctl::test {
namespace {

NamedTransport over(const std::string& name, MakeTransport make, const std::string& carrier,
                    std::map<std::string, std::string> more = {}) {
  NamedTransport transport;
  transport.name = name;
  transport.make = std::move(make);
  transport.options = std::move(more);
  transport.options.insert({{"MLX5_DEVICE", "emulated"},
                            {"EMULATED_HCA_OVER", carrier},
                            {"EMULATED_HCA_PLACEMENT", placement_text()}});
  transport.mapped_memory = carrier == "shm";
  return transport;
}

/// Two HCAs in this process, with the shortest possible queues.
NamedTransport two_nics(const std::string& name, std::map<std::string, std::string> more = {}) {
  more.insert({{"QP_DEPTH", "128"}, {"IBGDA_NUM_RC_PER_PE", "3"}});
  return over(
      name,
      [](const TransportSetup& setup) {
        mlx5::Settings settings = ibgda::read_settings(*setup.options);
        settings.emulated_devices = 2;
        return std::make_unique<ibgda::IbgdaTransport>(setup, settings);
      },
      "shm", std::move(more));
}

/// For all tests of this program; processes that a test forks have no part in it.
FakeFabric& fabric() {
  static FakeFabric two({{"mlx5_0", 1, true, ""}, {"mlx5_1", 1, true, ""}});
  return two;
}

/// Two devices as if they were real: they get no keys.
NamedTransport as_if_real() {
  NamedTransport transport;
  transport.name = "ibdevx_fake_devices";
  fabric(); // made before any fork, so that a child sees that it is another process's
  transport.make = [](const TransportSetup& setup) {
    return std::make_unique<mlx5::Mlx5Transport>(
        setup, fabric().use(ibdevx::read_settings(*setup.options)));
  };
  transport.nics = {{"mlx5_0", 1}, {"mlx5_1", 1}};
  transport.served_by_device = true;
  return transport;
}

INSTANTIATE_TEST_SUITE_P(
    Mlx5, Conformance,
    testing::Values(
        over("ibdevx", make_ibdevx_transport, "shm"), over("ibgda", make_ibgda_transport, "shm"),
        two_nics("ibgda_two_nics"), as_if_real(),
        over("ibdevx_over_ucx", make_ibdevx_transport, "ucx"),
        over("ibdevx_any_order", make_ibdevx_transport, "shm", {{"EMULATED_HCA_PLACEMENT", "any"}}),
        over("ibgda_any_order", make_ibgda_transport, "shm", {{"EMULATED_HCA_PLACEMENT", "any"}}),
        two_nics("ibgda_two_nics_any_order", {{"EMULATED_HCA_PLACEMENT", "any"}})),
    by_name);

} // namespace
} // namespace shmemctl::test
