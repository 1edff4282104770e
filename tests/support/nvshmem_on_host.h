// NVSHMEM's names for kernels, on threads of the host (host_kernels.h). A thread of a test says
// first which job is its own: shmemctl::nvshmem::job_of_thread.
#pragma once

#include "kernels/nvshmem_device.cuh"

// What CUDA's headers define.
using __half = shmemctl::device::Fp16;
using __nv_bfloat16 = shmemctl::device::Bf16;
using nvshmem_team_t = std::int32_t;

#include "nvshmem_compat/device/nvshmem_device.cuh"
