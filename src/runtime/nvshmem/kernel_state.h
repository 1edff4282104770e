// Passes the job to kernels: in a __constant__ of each module that uses NVSHMEM's device functions,
// because kernels of NVSHMEM programs have no argument for it.
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

// The state of these functions is global: modules register before main(), and there is one job.
// Thread safe.

/// Adds a module that is linked with the device library, which registers it with this function.
/// @param locate returns the address and the size of the module's __constant__
void add_job(nvshmemi_locate_job locate);
void remove_job(nvshmemi_locate_job locate);
/// Adds a module or library that the program has loaded itself. False if it has no such
/// __constant__. Throws Error.
bool add_module(CUmodule module);
bool add_library(CUlibrary library);
void remove_module(const void* module_or_library);

/// Writes the job to each __constant__ whose copy is missing or out of date; complete on return.
/// Modules that are added later get it, too. Throws Error.
void write_job(PeGpu& gpu);
/// From now on modules that are added do not get the job.
void forget_job();

/// The current device of the calling thread; -1 if there is none, or the driver does not say.
int current_device();
/// Throws Error (usage) if a device other than this PE's is current.
void require_own_device(PeGpu& gpu);

} // namespace shmemctl::nvshmem
