// Kernels that make the data of measurements and check it; not timed.
#pragma once

#include "kernels/bench/kernel_launch.h"
#include "kernels/bench/pattern.h"

namespace shmemctl::bench {

/// Puts a PE's pattern into `size_bytes` (a multiple of 8).
std::string launch_fill(const KernelLaunch& how, std::byte* area, std::size_t size_bytes,
                        std::uint64_t seed, int pe);
/// Compares every byte of an area of slots with what its operations must have left; the first wrong
/// one goes to control->wrong_at, expected and found.
std::string launch_check(const KernelLaunch& how, const std::byte* area, const PatternSlots& slots);
/// The smallest step of the GPU's timer, into control->step_ns.
std::string launch_timer_step(const KernelLaunch& how);
/// Begins and ends as measuring kernels do, with nothing between: what that adds to a time.
std::string launch_empty(const KernelLaunch& how);

} // namespace shmemctl::bench
