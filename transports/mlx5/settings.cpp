#include "transports/mlx5/settings.h"

#include <algorithm>
#include <bit>

#include "transports/mlx5/devx/devx_hca.h"
#include "transports/write_order.h"

namespace shmemctl::mlx5 {

namespace {

QpOptions queue_options(const Options& options) {
  QpOptions queue;
  queue.wqebbs = std::bit_ceil(static_cast<std::uint32_t>(options.integer("QP_DEPTH")));
  queue.signal_every = std::min(queue.signal_every, queue.wqebbs / 4);
  queue.path = rc::read_path_options(options);
  return queue;
}

} // namespace

Settings read_settings(const Options& options) {
  Settings settings;
  const std::string device = options.text("MLX5_DEVICE");
  settings.may_be_real = device != "emulated";
  // The emulated HCA is used only if an option asks for it.
  settings.may_be_emulated =
      device == "emulated" || (device == "auto" && options.value("EMULATED_HCA_OVER").set());
  settings.over = options.text("EMULATED_HCA_OVER");
  if (options.text("EMULATED_HCA_PLACEMENT") == "any")
    settings.emulated_order.placement = Placement::any;
  const WriteOrder order = read_write_order(options);
  if (order != WriteOrder::automatic)
    settings.emulated_order.claim =
        order == WriteOrder::kept ? EmulatedOrder::Claim::kept : EmulatedOrder::Claim::none;
  settings.queue = queue_options(options);
  DevxSettings devices;
  devices.verbs_library = options.text("VERBS_LIBRARY");
  devices.gid = verbs::read_gid_request(options);
  devices.write_order = order;
  devices.options = options;
  settings.list_devices = [devices](std::string& why) { return devx_devices(devices, why); };
  settings.open_device = [devices](const std::string& name, int port) {
    return open_devx_hca(name, port, devices);
  };
  return settings;
}

} // namespace shmemctl::mlx5
