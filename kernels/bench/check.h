// Kernels that generate the data of measurements and check it, which are not timed, and kernels
// that characterise the timer.
#pragma once

#include "kernels/bench/kernel_launch.h"
#include "kernels/bench/pattern.h"

namespace shmemctl::bench {

/// Fills `size_bytes` (a multiple of 8) at `area` with the pattern of `pe`.
std::string launch_fill(const KernelLaunch& how, std::byte* area, std::size_t size_bytes,
                        std::uint64_t seed, int pe);
/// Compares every byte of an area of slots with the value that the operations must have left.
/// Stores the offset of the first wrong byte to control->wrong_at, and its values to `expected` and
/// `found`.
std::string launch_check(const KernelLaunch& how, const std::byte* area, const PatternSlots& slots);
/// Measures the smallest step of the GPU's timer, and stores it to control->step_ns.
std::string launch_timer_step(const KernelLaunch& how);
/// Begins and ends as measuring kernels do, with nothing in between: measures how much of each
/// measured time is that of begin and end.
std::string launch_empty(const KernelLaunch& how);

} // namespace shmemctl::bench
