// Macros for code that runs on host and device.
#pragma once

#if defined(__CUDACC__)
#define SHMEMCTL_HOST_DEVICE __host__ __device__
/// For slow paths, which the GPU compiler would otherwise inline into every caller.
#define SHMEMCTL_NOINLINE __noinline__
#else
#define SHMEMCTL_HOST_DEVICE
#define SHMEMCTL_NOINLINE
#endif

/// Inlined even without optimisation, so that the compiler sees constants.
#define SHMEMCTL_ALWAYS_INLINE __attribute__((always_inline)) inline
