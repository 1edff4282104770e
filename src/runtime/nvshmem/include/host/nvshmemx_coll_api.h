/* Host code alone, by the path that NVSHMEM has it at. */
#include "../nvshmem_compat/host.h"
#include "../nvshmem_compat/not_here.h"
