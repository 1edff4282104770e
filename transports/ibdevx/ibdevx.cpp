#include "transports/ibdevx/ibdevx.h"

#include "transports/mlx5/mlx5_transport.h"
#include "transports/registry.h"

namespace shmemctl {

namespace ibdevx {

mlx5::Settings read_settings(const Options& options) {
  options.require_valid(find_transport("ibdevx")->options);
  mlx5::Settings settings = mlx5::read_settings(options);
  settings.name = "ibdevx";
  settings.qp_count_options = "SHMEMCTL_IB_NUM_RC_PER_DEVICE to the same value";
  settings.qp_sets = 1 + static_cast<int>(options.integer("IB_NUM_RC_PER_DEVICE"));
  return settings;
}

} // namespace ibdevx

std::unique_ptr<Transport> make_ibdevx_transport(const TransportSetup& setup) {
  return std::make_unique<mlx5::Mlx5Transport>(
      setup, ibdevx::read_settings(setup.options ? *setup.options : Options({})));
}

} // namespace shmemctl
