/* Functions of the host library that the device library (libnvshmem_device.a) calls. The two may be
 * in different modules, each with its own CUDA runtime, which knows only the kernels of its module.
 */
#ifndef SHMEMCTL_NVSHMEM_HOOKS_H
#define SHMEMCTL_NVSHMEM_HOOKS_H

#include <cuda_runtime.h>

extern "C" {

/// Returns the device address and the size in bytes of the job of a module's kernels.
typedef cudaError_t (*nvshmemi_locate_job)(void** address, size_t* size);

/// From now on the job at the address that `locate` returns is kept up to date, until
/// nvshmemi_forget_device_job.
void nvshmemi_register_device_job(nvshmemi_locate_job locate);
void nvshmemi_forget_device_job(nvshmemi_locate_job locate);

/// Ends the job if a kernel has reported an error, or this process if there is no job.
void nvshmemi_check_kernels(void);
/// Logs a warning that says why CUDA did not launch a kernel.
void nvshmemi_launch_refused(const char* why);

} // extern "C"

#endif
