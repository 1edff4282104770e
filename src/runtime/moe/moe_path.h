// Which kernels carry out the dispatches and combines of a point: the one place that decides it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/runtime/gpu/gpu.h"
#include "src/runtime/moe/exchange_config.h"

namespace shmemctl::moe {

/// The kernels of a point, as a plain value: chosen once per point and then passed on to whatever
/// sizes memory, checks limits, picks settings or launches.
///
///                    | every peer's heap is mapped  | some ranks are reached by a network
///   high throughput  | high_throughput.h            | high_throughput_internode.h
///   low latency      | low_latency.h                | low_latency_internode.h
struct MoePath {
  Mode mode = Mode::high_throughput;
  /// 0: intranode kernels. Otherwise internode kernels, which take this many consecutive ranks for
  /// a node: within it rows are forwarded by loads and stores. 1: each row is sent straight to its
  /// rank.
  std::int32_t node_ranks = 0;

  bool is_internode() const { return node_ranks > 0; }
  bool is_low_latency() const { return mode == Mode::low_latency; }
};

/// Intranode kernels need one node of at most max_ranks_of_kernels ranks whose GPUs all map each
/// other's memory; everything else takes internode kernels.
/// @param paths how this PE's kernels reach each PE (PeGpu::ways())
MoePath choose_moe_path(const ExchangeConfig& config, const std::vector<KernelPath>& paths);

/// Why kernels of that path cannot run on this PE: the first PE that they do not reach as they must
/// (by loads and stores within a node, by anything else across nodes). "" if there is none.
std::string unreachable_rank(const MoePath& path, int pe, const std::vector<KernelPath>& paths);

} // namespace shmemctl::moe
