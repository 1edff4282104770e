/* For programs that write NVSHMEM's queues by themselves, or with NVSHMEM_COMPAT_IBGDA_SEAM call
 * functions in place of that (deepep_v1/ibgda_device.cuh), which need nothing of this header. */
#ifndef NVSHMEM_COMPAT_IBGDA_SEAM
#error "the inside of NVSHMEM's device code is not in this library: tier B (nvshmem_programs.md)"
#endif
