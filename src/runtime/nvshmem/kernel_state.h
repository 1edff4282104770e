// Where kernels have the job: a __constant__ of each module that uses NVSHMEM's device functions,
// because kernels of such programs get no argument for it.
#pragma once

#include <cuda.h>

#include "src/abi/device_job.h"
#include "src/runtime/nvshmem/hooks.h"

namespace shmemctl {
class PeGpu;
}

namespace shmemctl::nvshmem {

/// Name of that __constant__, a DeviceJob.
inline constexpr const char* job_symbol = "nvshmemi_device_job";

// All of it belongs to the process: programs register before main(), and there is one job. Thread
// safe.

/// A module that is linked with the device library, which finds it.
void add_job(nvshmemi_locate_job locate);
void remove_job(nvshmemi_locate_job locate);
/// One that the program has loaded by itself. False if it has no such __constant__. Throws Error.
bool add_module(CUmodule module);
bool add_library(CUlibrary library);
void remove_module(const void* module_or_library);

/// Writes the job where it is not there yet, and is done on return. Throws Error.
void write_job(PeGpu& gpu);
/// From now on nothing is written.
void forget_job();

/// The device that is current in the calling thread; -1 if none is, or the driver does not say.
int current_device();
/// Throws Error (usage) if another device than this PE's is current.
void require_own_device(PeGpu& gpu);

} // namespace shmemctl::nvshmem
