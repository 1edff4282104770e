#include "transports/direct/soft_ways.h"

#include "transports/direct/wire.h"
#include "transports/mlx5/soft/mapped_executor.h"
#include "transports/mlx5/soft/transport_executor.h"

namespace shmemctl::direct {

std::uint64_t soft_device_id(int pe, std::size_t port) {
  return static_cast<std::uint64_t>(pe) * wire_limits::ports + port + 1;
}

SoftWays::Way& SoftWays::way_to(std::uint64_t device_id) {
  Way& way = ways_[device_id];
  if (way.executor)
    return way;
  if (below_) {
    const auto pe = static_cast<int>((device_id - 1) / wire_limits::ports);
    auto executor = std::make_shared<mlx5::TransportExecutor>(*below_, context_, pe);
    way.add = [raw = executor.get()](const mlx5::KeyWindow& window) { raw->add(window); };
    way.executor = std::move(executor);
  } else {
    auto executor = std::make_shared<mlx5::MappedExecutor>();
    way.add = [raw = executor.get()](const mlx5::KeyWindow& window) { raw->add(window); };
    way.executor = std::move(executor);
  }
  return way;
}

std::shared_ptr<mlx5::Executor> SoftWays::to(std::uint64_t device_id) {
  const std::lock_guard lock(mutex_);
  return way_to(device_id).executor;
}

void SoftWays::add(std::uint64_t device_id, const mlx5::KeyWindow& window) {
  const std::lock_guard lock(mutex_);
  way_to(device_id).add(window);
}

std::unique_ptr<mlx5::SoftHca> make_soft_hca(std::shared_ptr<SoftWays> ways, int pe,
                                             std::size_t port) {
  mlx5::SoftOptions options;
  if (port > 0)
    options.name += "-" + std::to_string(port);
  options.device_id = soft_device_id(pe, port);
  options.way_to_peer = [ways = std::move(ways)](const mlx5::PeerInfo& peer) {
    return ways->to(peer.device_id);
  };
  // Whoever waits serves it while it rests, so it need not keep a processor for long.
  options.idle_spins = 200;
  options.idle_yields = 20;
  options.longest_nap = std::chrono::microseconds(200);
  return std::make_unique<mlx5::SoftHca>(std::move(options));
}

} // namespace shmemctl::direct
