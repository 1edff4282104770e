// Dispatch and combine by kernels, between GPUs that map each other's memory, and across nodes.
#pragma once

#include "src/bench/moe/gpu_settings.h"
#include "src/moe/shape_rules.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::moe {

/// Multiprocessors of the GPU that are this PE's part.
std::int32_t shared_sms(const PeGpu& gpu);

/// Of the kernels that move the rows of such a setup there. `setup` outlives it.
GpuSettings gpu_settings_of(const PeGpu& gpu, const Setup& setup);

/// What kernels cannot do for anybody who asks for it: a shape, larger nodes, more multiprocessors
/// than there are, or too few. Nothing if they can.
std::optional<BrokenRule> gpu_broken_rule(const PeGpu& gpu, const Setup& setup);

/// Why kernels cannot do it here: a rank that they do not reach. "" if they can.
std::string gpu_backend_cannot(const PeGpu& gpu, const Setup& setup);

/// Symmetric memory of the GPU that make_gpu_backend() needs.
std::size_t gpu_backend_bytes(const PeGpu& gpu, const Setup& setup);

/// @param memory symmetric memory of `gpu`, gpu_backend_bytes() of it, zeroed on all ranks before
///               any goes on; stays the caller's, outlives the backend
/// @param rank of this PE, which is also its PE
std::unique_ptr<Backend> make_gpu_backend(PeGpu& gpu, std::byte* memory, const Setup& setup,
                                          std::int32_t rank);

} // namespace shmemctl::moe
