#include "transports/mlx5/emulated/emulated_paths.h"

#include "transports/mlx5/emulated/executor.h"
#include "transports/mlx5/wire.h"

namespace shmemctl::mlx5 {

std::uint64_t emulated_device_id(int pe, std::size_t port) {
  return static_cast<std::uint64_t>(pe) * wire_limits::ports + port + 1;
}

namespace {

int pe_of(std::uint64_t device_id) {
  return static_cast<int>((device_id - 1) / wire_limits::ports);
}

} // namespace

std::unique_ptr<TransportExecutor> EmulatedPaths::gpu_path_to(std::uint64_t device_id) const {
  if (!gpu_path_)
    return nullptr;
  return std::make_unique<TransportExecutor>(*gpu_path_, gpu_context_, pe_of(device_id),
                                             TransportExecutor::Reaches::gpus);
}

EmulatedPaths::Path& EmulatedPaths::path_to(std::uint64_t device_id) {
  Path& path = paths_[device_id];
  if (path.executor)
    return path;
  if (below_) {
    auto executor = std::make_unique<TransportExecutor>(*below_, context_, pe_of(device_id));
    path.add = [raw = executor.get()](const KeyWindow& window) { raw->add(window); };
    path.executor = std::make_shared<SplitExecutor>(std::move(executor));
  } else {
    auto executor = std::make_unique<MappedExecutor>();
    path.add = [raw = executor.get()](const KeyWindow& window) { raw->add(window); };
    path.executor = std::make_shared<SplitExecutor>(std::move(executor));
  }
  path.executor->use_for_gpu(gpu_path_to(device_id));
  return path;
}

std::shared_ptr<Executor> EmulatedPaths::to(std::uint64_t device_id) {
  const std::lock_guard lock(mutex_);
  return path_to(device_id).executor;
}

void EmulatedPaths::add(std::uint64_t device_id, const KeyWindow& window) {
  const std::lock_guard lock(mutex_);
  Path& path = path_to(device_id);
  if (!window.is_gpu)
    path.add(window);
  else if (TransportExecutor* const gpu = path.executor->for_gpu())
    gpu->add(window);
}

void EmulatedPaths::use_for_gpu(Transport* path, int context) {
  const std::lock_guard lock(mutex_);
  gpu_path_ = path;
  gpu_context_ = context;
  for (auto& [device_id, each] : paths_)
    if (each.executor)
      each.executor->use_for_gpu(gpu_path_to(device_id));
}

void EmulatedPaths::drop_gpu_region(int region) {
  const std::lock_guard lock(mutex_);
  for (auto& [device_id, each] : paths_)
    if (TransportExecutor* const gpu = each.executor ? each.executor->for_gpu() : nullptr)
      gpu->drop_region(region);
}

std::unique_ptr<EmulatedHca> make_emulated_hca(std::shared_ptr<EmulatedPaths> paths, int pe,
                                               std::size_t port, const EmulatedOrder& order) {
  EmulatedHcaOptions options;
  options.order = order;
  if (port > 0)
    options.name += "-" + std::to_string(port);
  options.device_id = emulated_device_id(pe, port);
  options.path_to_peer = [paths = std::move(paths)](const PeerInfo& peer) {
    return paths->to(peer.device_id);
  };
  // Waiting threads drive the HCA while its own thread sleeps, so that thread need not occupy a
  // core for long.
  options.idle_spins = 200;
  options.idle_yields = 20;
  options.longest_nap = std::chrono::microseconds(200);
  return std::make_unique<EmulatedHca>(std::move(options));
}

} // namespace shmemctl::mlx5
