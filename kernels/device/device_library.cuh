// The copy functions of the library that a program is linked with
// (src/runtime/nvshmem/device_state.cu). The library is compiled with a limit on registers, which a
// kernel cannot impose on functions that are compiled separately from it. Without
// SHMEMCTL_DEVICE_LIBRARY_ELSEWHERE, each program compiles its own copy functions.
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
SHMEMCTL_INSTANCE __device__ void copy_wide<Thread, Local>(int4*, const int4*, unsigned);
SHMEMCTL_INSTANCE __device__ void copy_any<Thread, Remote>(void*, const void*, std::size_t);
SHMEMCTL_INSTANCE __device__ void copy_wide<Thread, Remote>(int4*, const int4*, unsigned);
SHMEMCTL_INSTANCE __device__ void copy_any<Warp, Local>(void*, const void*, std::size_t);
SHMEMCTL_INSTANCE __device__ void copy_wide<Warp, Local>(int4*, const int4*, unsigned);
SHMEMCTL_INSTANCE __device__ void copy_any<Warp, Remote>(void*, const void*, std::size_t);
SHMEMCTL_INSTANCE __device__ void copy_wide<Warp, Remote>(int4*, const int4*, unsigned);
SHMEMCTL_INSTANCE __device__ void copy_any<Block, Local>(void*, const void*, std::size_t);
SHMEMCTL_INSTANCE __device__ void copy_wide<Block, Local>(int4*, const int4*, unsigned);
SHMEMCTL_INSTANCE __device__ void copy_any<Block, Remote>(void*, const void*, std::size_t);
SHMEMCTL_INSTANCE __device__ void copy_wide<Block, Remote>(int4*, const int4*, unsigned);
#undef SHMEMCTL_INSTANCE
} // namespace shmemctl::device::detail
#endif
