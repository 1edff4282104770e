/* NVSHMEM's functions for kernels, called by a thread, a warp or a block: families of functions
 * over the lists of types, each implemented in a few lines with shmemctl's device API. For
 * semantics that differ from OpenSHMEM's see docs/explanation/nvshmem_semantics.md. */
#ifndef NVSHMEM_COMPAT_DEVICE_NVSHMEM_DEVICE_CUH
#define NVSHMEM_COMPAT_DEVICE_NVSHMEM_DEVICE_CUH

/* The host's compiler warns of functions that are both inline and noinline. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"
#include "nvshmem_compat/device/atomics.cuh"
#include "nvshmem_compat/device/collectives.cuh"
#include "nvshmem_compat/device/order.cuh"
#include "nvshmem_compat/device/queries.cuh"
#include "nvshmem_compat/device/rma.cuh"
#include "nvshmem_compat/device/signal.cuh"
#include "nvshmem_compat/device/wait.cuh"
#pragma GCC diagnostic pop

#endif
