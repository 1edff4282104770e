/* For programs that write NVSHMEM's queues by themselves. With NVSHMEM_COMPAT_IBGDA_SEAM they call
 * functions in place of that (deepep_v1/ibgda_device.cuh), and need nothing of this header. */
#ifndef NVSHMEM_COMPAT_IBGDA_SEAM
#error "the structs of NVSHMEM's IBGDA are not in this library: tier B (nvshmem_programs.md)"
#endif
