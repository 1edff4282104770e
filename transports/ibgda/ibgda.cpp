#include "transports/ibgda/ibgda.h"

#include <bit>

#include "transports/registry.h"

namespace shmemctl {

namespace ibgda {

bool kernels_post(const Options& options) {
  const std::string path = options.text("DEVICE_PATH");
  return path == "ibgda" || (path == "auto" && options.boolean("IB_ENABLE_IBGDA"));
}

mlx5::Settings read_settings(const Options& options) {
  options.require_valid(find_transport("ibgda")->options);
  mlx5::Settings settings = mlx5::read_settings(options);
  settings.name = "ibgda";
  settings.qp_count_options = "SHMEMCTL_IBGDA_NUM_RC_PER_PE, SHMEMCTL_DEVICE_PATH and "
                              "SHMEMCTL_IB_ENABLE_IBGDA to the same values";
  settings.qp_sets = static_cast<int>(options.integer("IBGDA_NUM_RC_PER_PE"));
  settings.kernel_qp_sets = kernels_post(options) ? settings.qp_sets : 0;
  settings.kernel_qp_per_warp = options.text("IBGDA_RC_MAP_BY") == "warp";
  settings.all_ports = options.boolean("IBGDA_ENABLE_MULTI_PORT");
  settings.allocates_queues = true;
  settings.queue.completions = mlx5::CqMode::collapsed;
  settings.queue.ring_every =
      std::bit_ceil(static_cast<std::uint32_t>(options.integer("IBGDA_NUM_REQUESTS_IN_BATCH")));
  return settings;
}

} // namespace ibgda

std::unique_ptr<Transport> make_ibgda_transport(const TransportSetup& setup) {
  return std::make_unique<ibgda::IbgdaTransport>(
      setup, ibgda::read_settings(setup.options ? *setup.options : Options({})));
}

} // namespace shmemctl
