/* For programs that write to the queues of NVSHMEM's IBGDA themselves, which this library does not
 * support. With NVSHMEM_COMPAT_IBGDA_SEAM they call functions instead (deepep_v1/ibgda_device.cuh),
 * and need nothing from this header. */
#ifndef NVSHMEM_COMPAT_IBGDA_SEAM
#error "the structs of NVSHMEM's IBGDA are not in this library: tier B (nvshmem_programs.md)"
#endif
