/* Which interface this is, and whose. */
#ifndef NVSHMEM_COMPAT_VERSION_H
#define NVSHMEM_COMPAT_VERSION_H

/* Not NVSHMEM: its interface, over the runtime of shmemctl. */
#define NVSHMEM_VENDOR_SHMEMCTL 1

/* OpenSHMEM's version that the names follow. */
#define NVSHMEM_MAJOR_VERSION 1
#define NVSHMEM_MINOR_VERSION 3

/* NVSHMEM's version whose interface is followed; programs compare these. */
#define NVSHMEM_VENDOR_MAJOR_VERSION 3
#define NVSHMEM_VENDOR_MINOR_VERSION 4
#define NVSHMEM_VENDOR_PATCH_VERSION 5
#define NVSHMEM_VENDOR_VERSION                                                                     \
  (NVSHMEM_VENDOR_MAJOR_VERSION * 10000 + NVSHMEM_VENDOR_MINOR_VERSION * 100 +                     \
   NVSHMEM_VENDOR_PATCH_VERSION)

/* As nvshmem_info_get_name gives it. */
#define NVSHMEM_VENDOR_STRING "shmemctl (interface of NVSHMEM v3.4.5)"
#define NVSHMEM_MAX_NAME_LEN 256

#endif
