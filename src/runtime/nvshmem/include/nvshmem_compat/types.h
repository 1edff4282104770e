/* Types with NVSHMEM's names and members. */
#ifndef NVSHMEM_COMPAT_TYPES_H
#define NVSHMEM_COMPAT_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>
#ifdef __cplusplus
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

typedef int32_t nvshmem_team_t;
typedef nvshmem_team_t nvshmemx_team_t;

/* Identifies a job: one process creates it (nvshmemx_get_uniqueid) and sends its bytes to all
 * others. */
typedef struct {
  int version;
  char internal[124];
} nvshmemx_uniqueid_t;
typedef nvshmemx_uniqueid_t nvshmemx_uniqueid_v1;

/* Identifies a team that its members create without a parent team (nvshmemx_team_init). */
typedef uint64_t nvshmemx_team_uniqueid_t;

typedef struct {
  int version;
  nvshmemx_uniqueid_t* id;
  int myrank;
  int nranks;
} nvshmemx_uniqueid_args_t;

typedef struct {
  int version;
  nvshmemx_uniqueid_args_t uid_args;
  int cuda_device_id; /* CUDA's number of this PE's device; -1: the current one */
  char content[92];
} nvshmemx_init_args_t;

typedef struct {
  int version;
  void* mpi_comm; /* an MPI_Comm* */
  nvshmemx_init_args_t args;
} nvshmemx_init_attr_t;

typedef struct {
  int version;
  int num_contexts;
  nvshmemx_team_uniqueid_t uniqueid;
  char padding[48];
} nvshmem_team_config_t;

/* The version of a struct: the number of its layout in the upper 16 bits, and its size. */
#define NVSHMEM_COMPAT_STRUCT_VERSION(number, type) ((int)(((number) << 16) + sizeof(type)))

#define NVSHMEMX_UNIQUEID_INITIALIZER                                                              \
  {                                                                                                \
    NVSHMEM_COMPAT_STRUCT_VERSION(1, nvshmemx_uniqueid_t), {                                       \
      0                                                                                            \
    }                                                                                              \
  }
#define NVSHMEMX_UNIQUEID_ARGS_INITIALIZER                                                         \
  { NVSHMEM_COMPAT_STRUCT_VERSION(1, nvshmemx_uniqueid_args_t), NULL, -1, -1 }
#define NVSHMEMX_INIT_ARGS_INITIALIZER                                                             \
  {                                                                                                \
    NVSHMEM_COMPAT_STRUCT_VERSION(2, nvshmemx_init_args_t), NVSHMEMX_UNIQUEID_ARGS_INITIALIZER,    \
        -1, {                                                                                      \
      0                                                                                            \
    }                                                                                              \
  }
#define NVSHMEMX_INIT_ATTR_INITIALIZER                                                             \
  { NVSHMEM_COMPAT_STRUCT_VERSION(2, nvshmemx_init_attr_t), NULL, NVSHMEMX_INIT_ARGS_INITIALIZER }
#define NVSHMEM_TEAM_UNIQUID_INITIALIZER 0xffffffffffffffffULL
#define NVSHMEM_TEAM_CONFIG_INITIALIZER                                                            \
  {                                                                                                \
    NVSHMEM_COMPAT_STRUCT_VERSION(2, nvshmem_team_config_t), -1, NVSHMEM_TEAM_UNIQUID_INITIALIZER, \
    {                                                                                              \
      0                                                                                            \
    }                                                                                              \
  }

#endif
