/* NVSHMEM's interface over the runtime of shmemctl, for programs that were written for NVSHMEM:
 * docs/explanation/nvshmem_programs.md. For host code by any compiler of C++ or C, and, under nvcc,
 * for kernels; with NVSHMEM_HOSTLIB_ONLY defined, for host code alone. */
#ifndef NVSHMEM_COMPAT_NVSHMEM_H
#define NVSHMEM_COMPAT_NVSHMEM_H

#include "nvshmem_compat/host.h"
#include "nvshmem_compat/not_here.h"
#if defined(__CUDACC__) && !defined(NVSHMEM_HOSTLIB_ONLY)
#include "nvshmem_compat/device/nvshmem_device.cuh"
#endif

#endif
