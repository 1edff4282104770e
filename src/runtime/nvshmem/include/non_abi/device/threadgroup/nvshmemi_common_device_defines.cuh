/* For programs that write NVSHMEM's queues by themselves. */
#error "the inside of NVSHMEM's device code is not in this library: tier B (nvshmem_programs.md)"
