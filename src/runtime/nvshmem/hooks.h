/* What the device library (libnvshmem_device.a) calls of the host library. They may be in different
 * modules, each with a CUDA runtime of its own, which knows the kernels of its module alone. */
#ifndef SHMEMCTL_NVSHMEM_HOOKS_H
#define SHMEMCTL_NVSHMEM_HOOKS_H

#include <cuda_runtime.h>

extern "C" {

/// Where the device has the job of a module's kernels, and how many bytes it takes.
typedef cudaError_t (*nvshmemi_locate_job)(void** address, size_t* size);

/// Keeps what `locate` finds equal to the job, until it is forgotten.
void nvshmemi_register_device_job(nvshmemi_locate_job locate);
void nvshmemi_forget_device_job(nvshmemi_locate_job locate);

/// Ends the job if a kernel has reported an error, or if there is no job.
void nvshmemi_check_kernels(void);
/// Logs a warning: why CUDA did not launch a kernel.
void nvshmemi_launch_refused(const char* why);

} // extern "C"

#endif
