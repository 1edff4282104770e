// Kernels that are launched on a rank's stream before a timed call of dispatch or combine. No CUDA
// header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace shmemctl::moe {

/// Flushes the caches by writing all of `scratch`: if `scratch` is several times as large as the
/// caches, everything that they held before is written back and evicted. Returns "" or why the
/// launch failed; does not wait.
/// @param scratch aligned to 16 bytes
/// @param size_bytes a multiple of 16
std::string launch_flush(void* scratch, std::size_t size_bytes, void* stream);

/// Keeps the stream busy for that time, so that the host can enqueue the following work meanwhile.
/// Returns "" or why the launch failed; does not wait.
std::string launch_delay(std::uint64_t delay_ns, void* stream);

} // namespace shmemctl::moe
