// What limits the traffic of a point on GPUs: the links between them, their own memory, or their
// links to the host.
#pragma once

#include <optional>
#include <string>

#include "src/bench/bandwidth_limit.h"
#include "src/bench/case.h"
#include "src/bench/gpu_link.h"
#include "src/bench/measured_link.h"

namespace shmemctl::bench {

/// What carries all that this PE sends at a point on GPUs.
struct GpuPath {
  bool between_gpus = false;   ///< loads, stores and copy engines, from GPU memory to GPU memory
  bool in_host_memory = false; ///< loads and stores of GPUs, in a heap of host memory
  std::string otherwise;       ///< "no limit is known for ..." if neither
};
GpuPath path_of(Runtime& runtime, const Point& point);

/// What the limit of a point is, and whether there can be one of a network.
struct GpuLimit {
  bool on_gpus = false; ///< no PE's traffic takes a network or the host's processors
  FoundLimit found;
  double collective_bytes = 0; ///< of a collective: what the limit is about, by PE
};
/// Collective, the same on all PEs of a machine. The measured limit of kernels (what a copy engine
/// moves, multiprocessors need not reach), else the model's.
/// @param links may be nullptr: the model's
/// @param body of a collective, which says what it moves; else it may be nullptr
GpuLimit gpu_limit_of(Runtime& runtime, const Point& point, LinkMeter* links,
                      const Case* body = nullptr);

} // namespace shmemctl::bench
