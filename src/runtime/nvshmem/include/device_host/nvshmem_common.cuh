/* The names that programs use from NVSHMEM's header at this path are in nvshmem.h. */
#include "../nvshmem.h"
