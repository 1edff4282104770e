// Copies in a library that a program is linked with (src/runtime/nvshmem/device_state.cu): there
// they take few registers, which a kernel that is compiled separately from them cannot ask for.
// Without SHMEMCTL_DEVICE_LIBRARY_ELSEWHERE, each program compiles its own.
#pragma once

#include "kernels/device/copy.cuh"

#if defined(SHMEMCTL_DEVICE_LIBRARY_ELSEWHERE) || defined(SHMEMCTL_DEVICE_LIBRARY_HERE)
namespace shmemctl::device::detail {
#ifdef SHMEMCTL_DEVICE_LIBRARY_HERE
#define SHMEMCTL_INSTANCE template
#else
#define SHMEMCTL_INSTANCE extern template
#endif
SHMEMCTL_INSTANCE __device__ void copy_any<Thread, Local>(void*, const void*, std::size_t);
SHMEMCTL_INSTANCE __device__ void copy_any<Thread, Remote>(void*, const void*, std::size_t);
SHMEMCTL_INSTANCE __device__ void copy_any<Warp, Local>(void*, const void*, std::size_t);
SHMEMCTL_INSTANCE __device__ void copy_any<Warp, Remote>(void*, const void*, std::size_t);
SHMEMCTL_INSTANCE __device__ void copy_any<Block, Local>(void*, const void*, std::size_t);
SHMEMCTL_INSTANCE __device__ void copy_any<Block, Remote>(void*, const void*, std::size_t);
#undef SHMEMCTL_INSTANCE
} // namespace shmemctl::device::detail
#endif
