/* For programs that write NVSHMEM's queues by themselves. */
#error "the structs of NVSHMEM's IBGDA are not in this library: tier B (nvshmem_programs.md)"
