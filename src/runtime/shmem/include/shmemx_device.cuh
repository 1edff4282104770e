/* The operations of kernels (namespace shmemctl::device), and the job that a kernel passes to them:
 *
 *   __global__ void kernel(const __grid_constant__ shmemctl::DeviceJob job, ...);
 *   kernel<<<blocks, threads, 0, stream>>>(shmemx_gpu_job(), ...);
 *
 * If SHMEMCTL_DEVICE_WITHOUT_NETWORK is defined before this file is included, kernels are smaller,
 * but run only in jobs in which the GPU memory of all PEs is mapped. */
#ifndef SHMEMX_DEVICE_CUH
#define SHMEMX_DEVICE_CUH

/* With -rdc=true the host's compiler warns of functions that are both inline and noinline. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"
#include "shmemctl/device/kernels/shmem_device.cuh"
#pragma GCC diagnostic pop
#include "shmemx.h"

/* The job of this PE as it is now. Call it again after shmemx_gpu_malloc, and after teams were
 * created or destroyed. */
inline shmemctl::DeviceJob shmemx_gpu_job() {
  shmemctl::DeviceJob job;
  shmemx_gpu_job(&job, sizeof job);
  return job;
}

#endif
