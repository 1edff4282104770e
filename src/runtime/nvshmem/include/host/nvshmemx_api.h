/* Names for host code only, at the path that this header has in NVSHMEM. */
#include "../nvshmem_compat/host.h"
#include "../nvshmem_compat/not_here.h"
