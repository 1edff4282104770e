// For code that host and device run alike.
#pragma once

#if defined(__CUDACC__)
#define SHMEMCTL_HOST_DEVICE __host__ __device__
/// What is slow anyway: a GPU's compiler would put a copy of it into every caller.
#define SHMEMCTL_NOINLINE __noinline__
#else
#define SHMEMCTL_HOST_DEVICE
#define SHMEMCTL_NOINLINE
#endif

/// Also where a compiler does not optimise, so that it sees what is constant.
#define SHMEMCTL_ALWAYS_INLINE __attribute__((always_inline)) inline
