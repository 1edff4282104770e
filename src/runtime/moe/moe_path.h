// Chooses the kernels of dispatch and combine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/runtime/gpu/gpu.h"
#include "src/runtime/moe/exchange_config.h"

namespace shmemctl::moe {

/// The kernels of a configuration, as a plain value: chosen once, and then passed to the functions
/// that size memory, check limits, pick settings, or launch.
///
///                    | all peers' heaps are mapped  | some ranks are reached by a network
///   high throughput  | high_throughput.h            | high_throughput_internode.h
///   low latency      | low_latency.h                | low_latency_internode.h
struct MoePath {
  Mode mode = Mode::high_throughput;
  /// 0: intranode kernels. Otherwise internode kernels, for which this many consecutive ranks form
  /// a node, within which rows are forwarded by loads and stores. With 1, and always in low
  /// latency, each row is sent straight to its rank.
  std::int32_t node_ranks = 0;

  bool is_internode() const { return node_ranks > 0; }
  bool is_low_latency() const { return mode == Mode::low_latency; }
};

/// Intranode kernels if the configuration has one node of at most max_ranks_of_kernels ranks, and
/// this PE's kernels reach none of them by a network; otherwise internode kernels.
/// @param paths how this PE's kernels reach each PE (PeGpu::paths_by_pe())
MoePath choose_moe_path(const ExchangeConfig& config, const std::vector<KernelPath>& paths);

/// Why kernels of this path cannot run on this PE: the first PE that they cannot reach in the way
/// that they need (loads and stores within a node, any path across nodes). "" if they can run.
std::string unreachable_rank(const MoePath& path, int pe, const std::vector<KernelPath>& paths);

} // namespace shmemctl::moe
