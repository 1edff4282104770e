#include "transports/direct/emulated_paths.h"

#include "transports/direct/wire.h"
#include "transports/mlx5/emulated/executor.h"

namespace shmemctl::direct {

std::uint64_t emulated_device_id(int pe, std::size_t port) {
  return static_cast<std::uint64_t>(pe) * wire_limits::ports + port + 1;
}

namespace {

int pe_of(std::uint64_t device_id) {
  return static_cast<int>((device_id - 1) / wire_limits::ports);
}

} // namespace

std::unique_ptr<mlx5::TransportExecutor> EmulatedPaths::gpu_way_to(std::uint64_t device_id) const {
  if (!gpu_way_)
    return nullptr;
  return std::make_unique<mlx5::TransportExecutor>(*gpu_way_, gpu_context_, pe_of(device_id),
                                                   mlx5::TransportExecutor::Reaches::gpus);
}

EmulatedPaths::Way& EmulatedPaths::way_to(std::uint64_t device_id) {
  Way& way = ways_[device_id];
  if (way.executor)
    return way;
  if (below_) {
    auto executor = std::make_unique<mlx5::TransportExecutor>(*below_, context_, pe_of(device_id));
    way.add = [raw = executor.get()](const mlx5::KeyWindow& window) { raw->add(window); };
    way.executor = std::make_shared<mlx5::SplitExecutor>(std::move(executor));
  } else {
    auto executor = std::make_unique<mlx5::MappedExecutor>();
    way.add = [raw = executor.get()](const mlx5::KeyWindow& window) { raw->add(window); };
    way.executor = std::make_shared<mlx5::SplitExecutor>(std::move(executor));
  }
  way.executor->use_for_gpu(gpu_way_to(device_id));
  return way;
}

std::shared_ptr<mlx5::Executor> EmulatedPaths::to(std::uint64_t device_id) {
  const std::lock_guard lock(mutex_);
  return way_to(device_id).executor;
}

void EmulatedPaths::add(std::uint64_t device_id, const mlx5::KeyWindow& window) {
  const std::lock_guard lock(mutex_);
  Way& way = way_to(device_id);
  if (!window.is_gpu)
    way.add(window);
  else if (mlx5::TransportExecutor* const gpu = way.executor->for_gpu())
    gpu->add(window);
}

void EmulatedPaths::use_for_gpu(Transport* way, int context) {
  const std::lock_guard lock(mutex_);
  gpu_way_ = way;
  gpu_context_ = context;
  for (auto& [device_id, each] : ways_)
    if (each.executor)
      each.executor->use_for_gpu(gpu_way_to(device_id));
}

std::unique_ptr<mlx5::EmulatedHca> make_emulated_hca(std::shared_ptr<EmulatedPaths> ways, int pe,
                                                     std::size_t port,
                                                     const mlx5::EmulatedOrder& order) {
  mlx5::EmulatedHcaOptions options;
  options.order = order;
  if (port > 0)
    options.name += "-" + std::to_string(port);
  options.device_id = emulated_device_id(pe, port);
  options.way_to_peer = [ways = std::move(ways)](const mlx5::PeerInfo& peer) {
    return ways->to(peer.device_id);
  };
  // Whoever waits serves it while it rests, so it need not keep a processor for long.
  options.idle_spins = 200;
  options.idle_yields = 20;
  options.longest_nap = std::chrono::microseconds(200);
  return std::make_unique<mlx5::EmulatedHca>(std::move(options));
}

} // namespace shmemctl::direct
