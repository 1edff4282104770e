/* Names for host code only. */
#include "nvshmem_compat/host.h"
#include "nvshmem_compat/not_here.h"
