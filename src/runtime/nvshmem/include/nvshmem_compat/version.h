/* Version and vendor of the interface. */
#ifndef NVSHMEM_COMPAT_VERSION_H
#define NVSHMEM_COMPAT_VERSION_H

#include "../non_abi/nvshmem_version.h"

/* Tells programs that this is not NVSHMEM, but NVSHMEM's interface over the runtime of shmemctl. */
#define NVSHMEM_VENDOR_SHMEMCTL 1

/* The version of OpenSHMEM that the names follow. */
#define NVSHMEM_MAJOR_VERSION 1
#define NVSHMEM_MINOR_VERSION 3

#define NVSHMEM_VENDOR_VERSION                                                                     \
  (NVSHMEM_VENDOR_MAJOR_VERSION * 10000 + NVSHMEM_VENDOR_MINOR_VERSION * 100 +                     \
   NVSHMEM_VENDOR_PATCH_VERSION)

/* The name that nvshmem_info_get_name returns. */
#define NVSHMEM_VENDOR_STRING "shmemctl (interface of NVSHMEM v3.4.5)"
#define NVSHMEM_MAX_NAME_LEN 256

#endif
