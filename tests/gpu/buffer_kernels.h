// What user_buffers_test.cpp does by kernels and by CUDA's runtime.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "src/abi/device_job.h"

namespace shmemctl::test {

/// Copies by loads and stores of many threads: 16 bytes each where both sides allow it.
void launch_byte_copy(cudaStream_t stream, std::byte* to, const std::byte* from,
                      std::size_t size_bytes);
/// A kernel that adds `count` times 1 to a word of another PE's buffer, by atomics of the system.
void launch_count(cudaStream_t stream, unsigned long long* word, unsigned count);

/// Two PEs, at the same time, `rounds` times: stores into the other one's buffer, then a signal in
/// the GPUs' heap, then a wait for the other one's, and a look at its own buffer. `signals` is two
/// zeroed words of the heap, `wrong` counts words that are not the round's.
void launch_store_and_signal(cudaStream_t stream, const DeviceJob& job, std::uint64_t* theirs,
                             const std::uint64_t* mine, std::size_t words, std::uint64_t* signals,
                             unsigned long long* wrong, unsigned rounds);

/// What `enqueue` puts into the stream, as a graph that is launched so many times. Throws
/// std::runtime_error.
void launch_as_graph(cudaStream_t stream, const std::function<void()>& enqueue, int launches);

/// cudaMallocAsync and cudaMallocManaged on the current device. Throw std::runtime_error.
void* pool_allocate(std::size_t size_bytes);
void pool_free(void* memory);
void* managed_allocate(std::size_t size_bytes);
void managed_free(void* memory);

} // namespace shmemctl::test
