#include "transports/direct/settings.h"

#include <algorithm>
#include <bit>

#include "transports/mlx5/devx/devx_hca.h"
#include "transports/write_order.h"

namespace shmemctl::direct {

namespace {

mlx5::QpOptions queue_options(Flavour flavour, const Options& options) {
  mlx5::QpOptions queue;
  queue.wqebbs = std::bit_ceil(static_cast<std::uint32_t>(options.integer("QP_DEPTH")));
  queue.signal_every = std::min(queue.signal_every, queue.wqebbs / 4);
  if (flavour == Flavour::gda) {
    queue.completions = mlx5::CqMode::collapsed;
    queue.ring_every =
        std::bit_ceil(static_cast<std::uint32_t>(options.integer("IBGDA_NUM_REQUESTS_IN_BATCH")));
  }
  queue.path.gid_index = static_cast<int>(options.integer("IB_GID_INDEX"));
  queue.path.service_level = static_cast<int>(options.integer("IB_SL"));
  queue.path.traffic_class = static_cast<int>(options.integer("IB_TRAFFIC_CLASS"));
  queue.path.ack_timeout = static_cast<int>(options.integer("IB_TIMEOUT"));
  queue.path.retries = static_cast<int>(options.integer("IB_RETRY_COUNT"));
  return queue;
}

} // namespace

bool kernels_post(const Options& options) {
  const std::string path = options.text("DEVICE_PATH");
  return path == "ibgda" || (path == "auto" && options.boolean("IB_ENABLE_IBGDA"));
}

Settings read_settings(Flavour flavour, const Options& options) {
  options.require_valid({"MLX5_DEVICE",
                         "SOFT_HCA_OVER",
                         "QP_DEPTH",
                         "IB_NUM_RC_PER_DEVICE",
                         "IBGDA_NUM_RC_PER_PE",
                         "IBGDA_NUM_REQUESTS_IN_BATCH",
                         "IBGDA_ENABLE_MULTI_PORT",
                         "IB_GID_INDEX",
                         "IB_ROCE_VERSION_NUM",
                         "IB_SL",
                         "IB_TRAFFIC_CLASS",
                         "IB_ADDR_FAMILY",
                         "IB_ADDR_RANGE",
                         "IB_TIMEOUT",
                         "IB_RETRY_COUNT",
                         "IB_WRITE_ORDER",
                         "SOFT_HCA_PLACEMENT",
                         "DEVICE_PATH",
                         "IBGDA_RC_MAP_BY",
                         "IB_ENABLE_IBGDA"});
  Settings settings;
  settings.flavour = flavour;
  const std::string device = options.text("MLX5_DEVICE");
  settings.may_be_real = device != "soft";
  // The emulated HCA is used only on request.
  settings.may_be_emulated =
      device == "soft" || (device == "auto" && options.value("SOFT_HCA_OVER").set());
  settings.over = options.text("SOFT_HCA_OVER");
  if (options.text("SOFT_HCA_PLACEMENT") == "any")
    settings.emulated_order.placement = mlx5::Placement::any;
  const WriteOrder order = read_write_order(options);
  if (order != WriteOrder::automatic)
    settings.emulated_order.claim = order == WriteOrder::kept ? mlx5::EmulatedOrder::Claim::kept
                                                              : mlx5::EmulatedOrder::Claim::none;
  const bool gda = flavour == Flavour::gda;
  settings.qp_sets = gda ? static_cast<int>(options.integer("IBGDA_NUM_RC_PER_PE"))
                         : 1 + static_cast<int>(options.integer("IB_NUM_RC_PER_DEVICE"));
  settings.kernel_qp_sets = gda && kernels_post(options) ? settings.qp_sets : 0;
  settings.kernel_qp_per_warp = options.text("IBGDA_RC_MAP_BY") == "warp";
  settings.all_ports = !gda || options.boolean("IBGDA_ENABLE_MULTI_PORT");
  settings.queue = queue_options(flavour, options);
  mlx5::DevxSettings devices;
  devices.verbs_library = options.text("VERBS_LIBRARY");
  devices.ipv6 = options.text("IB_ADDR_FAMILY") == "AF_INET6";
  devices.address_range = options.text("IB_ADDR_RANGE");
  devices.roce_version = static_cast<int>(options.integer("IB_ROCE_VERSION_NUM"));
  devices.write_order = order;
  devices.options = options;
  settings.list_devices = [devices](std::string& why) { return mlx5::devx_devices(devices, why); };
  settings.open_device = [devices](const std::string& name, int port) {
    return mlx5::open_devx_hca(name, port, devices);
  };
  return settings;
}

} // namespace shmemctl::direct
