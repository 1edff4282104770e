/* What programs get from NVSHMEM's headers besides NVSHMEM's names: the headers that those include,
 * and a macro. */
#ifndef NVSHMEM_COMPAT_RELY_H
#define NVSHMEM_COMPAT_RELY_H

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With an older standard this header would print many errors; device/job.cuh refuses it in one
 * line. */
#if defined(__CUDACC__) && !defined(NVSHMEM_HOSTLIB_ONLY) && __cplusplus >= 201703L
#include <cooperative_groups.h>
#endif

/* Prints to stderr, with file and line. */
#define NVSHMEMI_ERROR_PRINT(...)                                                                  \
  do {                                                                                             \
    fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                                \
    fprintf(stderr, __VA_ARGS__);                                                                  \
  } while (0)

#endif
