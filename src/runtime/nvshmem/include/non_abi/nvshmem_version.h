/* The version of NVSHMEM whose interface this is; programs compare these numbers. Build systems
 * read them from this file, at the path that it has in NVSHMEM, so each is a plain number. */
#ifndef NVSHMEM_COMPAT_NON_ABI_NVSHMEM_VERSION_H
#define NVSHMEM_COMPAT_NON_ABI_NVSHMEM_VERSION_H

#define NVSHMEM_VENDOR_MAJOR_VERSION 3
#define NVSHMEM_VENDOR_MINOR_VERSION 4
#define NVSHMEM_VENDOR_PATCH_VERSION 5

#endif
