/* For programs that use NVSHMEM's tiles, which this library does not have. */
#error "NVSHMEM's tiles are not in this library: tier C (nvshmem_programs.md)"
