/* The names nvshmemx_* are in nvshmem.h, too. */
#ifndef NVSHMEM_COMPAT_NVSHMEMX_H
#define NVSHMEM_COMPAT_NVSHMEMX_H

#include "nvshmem.h"

#endif
