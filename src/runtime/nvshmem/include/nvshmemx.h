/* The names nvshmemx_*: with the others in nvshmem.h. */
#ifndef NVSHMEM_COMPAT_NVSHMEMX_H
#define NVSHMEM_COMPAT_NVSHMEMX_H

#include "nvshmem.h"

#endif
