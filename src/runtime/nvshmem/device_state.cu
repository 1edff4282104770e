// The device library of NVSHMEM programs, libnvshmem_device.a: the job of their kernels, and,
// shared by all kernels of a program, copies and the operations on PEs that are reached over the
// network. Its collectives are in device_collectives.cu.
//
// Compiled as relocatable device code with at most 64 registers: a kernel needs as many registers
// as the functions that it may call, and programs launch blocks of 1024 threads.
#define SHMEMCTL_DEVICE_LIBRARY_HERE
#include "kernels/nvshmem_device.cuh"
#include "src/runtime/nvshmem/hooks.h"

/// The host library writes it in each module that is linked with this library. Hidden, so that each
/// shared library has its own.
extern "C" {
__attribute__((visibility("hidden"))) __constant__ shmemctl::DeviceJob nvshmemi_device_job;
}

namespace {

cudaError_t locate(void** address, size_t* size) {
  const cudaError_t found = cudaGetSymbolSize(size, nvshmemi_device_job);
  return found == cudaSuccess ? cudaGetSymbolAddress(address, nvshmemi_device_job) : found;
}

/// Registers the job before main(), or when the shared library that contains it is loaded.
struct Registration {
  Registration() { nvshmemi_register_device_job(locate); }
  ~Registration() { nvshmemi_forget_device_job(locate); }
};
const Registration registration;

} // namespace
