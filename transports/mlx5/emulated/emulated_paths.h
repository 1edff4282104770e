// How an emulated HCA reaches its peers: through their memory that is mapped here, or a transport.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "transports/mlx5/emulated/emulated_hca.h"
#include "transports/mlx5/emulated/executor.h"
#include "transports/transport.h"

namespace shmemctl::mlx5 {

/// The number of an emulated HCA in the job; never 0.
std::uint64_t emulated_device_id(int pe, std::size_t port);

/// The paths of one HCA. Thread safe.
class EmulatedPaths {
public:
  /// @param below   transport to the peers; nullptr: their memory is mapped here
  /// @param context context of `below` that no one else uses
  EmulatedPaths(Transport* below, int context) : below_(below), context_(context) {}

  /// The executor for the HCA `device_id` of the job, created on first use.
  std::shared_ptr<Executor> to(std::uint64_t device_id);
  /// Adds memory that the HCA `device_id` has registered. Called while this HCA is held.
  void add(std::uint64_t device_id, const KeyWindow& window);
  /// Sets the transport for the peers' GPU memory; it must accept local memory of any kind. With
  /// nullptr, GPU memory is no longer reached, and its keys become unknown. Called while the HCA is
  /// held.
  /// @param context context of `path` for this use only
  void use_for_gpu(Transport* path, int context);
  /// The keys of a region of GPU memory become unknown. Called while the HCA is held.
  void drop_gpu_region(int region);

private:
  struct Path {
    std::shared_ptr<SplitExecutor> executor;
    std::function<void(const KeyWindow&)> add;
  };
  Path& path_to(std::uint64_t device_id);
  std::unique_ptr<TransportExecutor> gpu_path_to(std::uint64_t device_id) const;

  Transport* below_;
  int context_;
  Transport* gpu_path_ = nullptr;
  int gpu_context_ = 0;
  std::mutex mutex_;
  std::map<std::uint64_t, Path> paths_;
};

/// Creates an HCA that reaches its peers through `paths`. Throws Error (unavailable).
std::unique_ptr<EmulatedHca> make_emulated_hca(std::shared_ptr<EmulatedPaths> paths, int pe,
                                               std::size_t port, const EmulatedOrder& order);

} // namespace shmemctl::mlx5
