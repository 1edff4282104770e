/* For programs that move tiles. */
#error "NVSHMEM's tiles are not in this library: tier C (nvshmem_programs.md)"
