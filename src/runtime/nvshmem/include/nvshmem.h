/* NVSHMEM's interface over the runtime of shmemctl, for programs that were written for NVSHMEM. See
 * docs/explanation/nvshmem_programs.md. Any C++ or C compiler can compile host code with it, and
 * nvcc also kernels. If NVSHMEM_HOSTLIB_ONLY is defined, only names for host code are declared. */
#ifndef NVSHMEM_COMPAT_NVSHMEM_H
#define NVSHMEM_COMPAT_NVSHMEM_H

#include "nvshmem_compat/host.h"
#include "nvshmem_compat/not_here.h"
#if defined(__CUDACC__) && !defined(NVSHMEM_HOSTLIB_ONLY)
#include "nvshmem_compat/device/nvshmem_device.cuh"
#endif

#endif
