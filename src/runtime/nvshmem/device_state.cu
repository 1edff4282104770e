// The device library of NVSHMEM programs, libnvshmem_device.a: the job of their kernels, and once
// for all kernels of a program, the operations on PEs that are reached over the network, and
// copies. Its collectives are in device_collectives.cu.
//
// Compiled as relocatable device code with at most 64 registers: a kernel takes as many as the
// functions that it may call, and programs launch blocks of 1024 threads.
#define SHMEMCTL_DEVICE_LIBRARY_HERE
#include "kernels/nvshmem_device.cuh"

extern "C" {

/// Filled by the host library, in each module that is linked with this one.
__constant__ shmemctl::DeviceJob nvshmemi_device_job;

/// Of the host library: keeps what `symbol` names equal to the job.
void nvshmemi_register_device_job(const void* symbol);

} // extern "C"

namespace {

/// Before the program's main(), or when the shared library that holds it is loaded.
struct Registration {
  Registration() { nvshmemi_register_device_job(&nvshmemi_device_job); }
};
const Registration registration;

} // namespace
