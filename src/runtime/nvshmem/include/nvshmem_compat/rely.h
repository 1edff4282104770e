/* What programs get from NVSHMEM's headers although it has no name of NVSHMEM: standard headers
 * that these include, a macro, and a namespace alias. */
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
/* DeepEP V1's low-latency kernels use this alias without declaring it. */
namespace cg = cooperative_groups;
#endif

/* Prints to stderr, with file and line. */
#define NVSHMEMI_ERROR_PRINT(...)                                                                  \
  do {                                                                                             \
    fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                                \
    fprintf(stderr, __VA_ARGS__);                                                                  \
  } while (0)

#endif
