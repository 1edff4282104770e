// Kernels of barrier and sync over all PEs.
#pragma once

#include "kernels/bench/kernel_launch.h"

namespace shmemctl::bench {

enum class BarrierKernel : std::int32_t { barrier, sync };

struct BarrierArguments {
  BarrierKernel kernel;
  std::uint64_t first, count;
  /// Symmetric, by PE: the last call that it has entered, written before the call. Looked at behind
  /// each call if `looks`, which then is not timed.
  std::uint64_t* cells;
  bool looks;
};
std::string launch_barrier(const KernelLaunch& how, const BarrierArguments& arguments);

} // namespace shmemctl::bench
