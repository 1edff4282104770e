/* What programs take from this header of NVSHMEM's own is in nvshmem.h. */
#include "../nvshmem.h"
