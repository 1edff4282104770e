/* NVSHMEM's functions for kernels, of a thread, a warp and a block: families over the lists of
 * types, each a few lines over shmemctl's device API. Semantics, where they are not OpenSHMEM's:
 * docs/explanation/nvshmem_semantics.md. */
#ifndef NVSHMEM_COMPAT_DEVICE_NVSHMEM_DEVICE_CUH
#define NVSHMEM_COMPAT_DEVICE_NVSHMEM_DEVICE_CUH

/* The host's compiler sees functions that are inline, and not to be inlined. */
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
