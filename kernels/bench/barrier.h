// Kernels of barrier and sync over all PEs.
#pragma once

#include "kernels/bench/launcher.h"

namespace shmemctl::bench {

enum class BarrierKernel : std::int32_t { barrier, sync };

struct BarrierArguments {
  BarrierKernel kernel;
  std::uint64_t first, count;
  /// Symmetric, by PE: the number of the last call that the PE has entered, which it writes before
  /// the call. Written and checked only if `checks`; such a launch is not timed.
  std::uint64_t* cells;
  bool checks;
};
SHMEMCTL_LAUNCHER(launch_barrier, BarrierArguments)

} // namespace shmemctl::bench
