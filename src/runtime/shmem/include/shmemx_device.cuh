/* The operations of kernels (namespace shmemctl::device), and what a kernel needs for them:
 *
 *   __global__ void kernel(const __grid_constant__ shmemctl::DeviceJob job, ...);
 *   kernel<<<blocks, threads, 0, stream>>>(shmemx_gpu_job(), ...);
 *
 * With SHMEMCTL_DEVICE_WITHOUT_NETWORK defined before it, kernels are for jobs all of whose PEs are
 * mapped, and smaller. */
#ifndef SHMEMX_DEVICE_CUH
#define SHMEMX_DEVICE_CUH

/* With -rdc=true the host's compiler sees functions that are inline, and not to be inlined. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"
#include "shmemctl/device/kernels/shmem_device.cuh"
#pragma GCC diagnostic pop
#include "shmemx.h"

/* Of this PE, as it is now: take it again after shmemx_gpu_malloc, and where teams come and go. */
inline shmemctl::DeviceJob shmemx_gpu_job() {
  shmemctl::DeviceJob job;
  shmemx_gpu_job(&job, sizeof job);
  return job;
}

#endif
