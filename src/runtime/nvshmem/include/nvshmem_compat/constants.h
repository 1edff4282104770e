/* Constants with NVSHMEM's names. Programs must use the names: some values are the runtime's own.
 */
#ifndef NVSHMEM_COMPAT_CONSTANTS_H
#define NVSHMEM_COMPAT_CONSTANTS_H

#include <limits.h>

/* Return values of nvshmemx calls. */
enum nvshmemx_status {
  NVSHMEMX_SUCCESS = 0,
  NVSHMEMX_ERROR_INVALID_VALUE,
  NVSHMEMX_ERROR_OUT_OF_MEMORY,
  NVSHMEMX_ERROR_NOT_SUPPORTED,
  NVSHMEMX_ERROR_SYMMETRY,
  NVSHMEMX_ERROR_GPU_NOT_SELECTED,
  NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED,
  NVSHMEMX_ERROR_INTERNAL,
  NVSHMEMX_ERROR_SENTINEL = INT_MAX
};

typedef enum nvshmem_compat_compare {
  NVSHMEM_CMP_EQ = 0,
  NVSHMEM_CMP_NE = 1,
  NVSHMEM_CMP_GT = 2,
  NVSHMEM_CMP_LE = 3,
  NVSHMEM_CMP_LT = 4,
  NVSHMEM_CMP_GE = 5,
  NVSHMEM_CMP_SENTINEL = INT_MAX
} nvshmemx_cmp_type_t;

typedef enum nvshmem_compat_signal_op {
  NVSHMEM_SIGNAL_SET = 9,
  NVSHMEM_SIGNAL_ADD = 10
} nvshmemx_signal_op_t;

typedef enum nvshmem_compat_thread_level {
  NVSHMEM_THREAD_SINGLE = 0,
  NVSHMEM_THREAD_FUNNELED = 1,
  NVSHMEM_THREAD_SERIALIZED = 2,
  NVSHMEM_THREAD_MULTIPLE = 3,
  NVSHMEM_THREAD_TYPE_SENTINEL = INT_MAX
} nvshmemx_thread_support_t;

/* Return values of nvshmemx_init_status. In this library a PE goes directly from NOT_INITIALIZED to
 * IS_INITIALIZED or, if other PEs use the same GPU, to FULL_MPG. */
typedef enum nvshmem_compat_init_status {
  NVSHMEM_STATUS_NOT_INITIALIZED = 0,
  NVSHMEM_STATUS_IS_BOOTSTRAPPED,
  NVSHMEM_STATUS_IS_INITIALIZED,
  NVSHMEM_STATUS_LIMITED_MPG,
  NVSHMEM_STATUS_FULL_MPG,
  NVSHMEM_STATUS_INVALID = INT_MAX
} nvshmemx_init_status_t;

/* nvshmemx_init_attr's flags. */
enum nvshmem_compat_init_flags {
  NVSHMEMX_INIT_THREAD_PES = 1,
  NVSHMEMX_INIT_WITH_MPI_COMM = 1 << 1,
  NVSHMEMX_INIT_WITH_SHMEM = 1 << 2,
  NVSHMEMX_INIT_WITH_UNIQUEID = 1 << 3
};

typedef enum nvshmem_compat_pe { NVSHMEM_PE_INVALID = -1 } nvshmem_pe_index_t;

/* A team's handle is the runtime's number of the team, on the host and in kernels. Numbers 1 and 3
 * are teams of the runtime that NVSHMEM does not have. */
typedef enum nvshmem_compat_team {
  NVSHMEM_TEAM_INVALID = -1,
  NVSHMEM_TEAM_WORLD = 0,
  NVSHMEM_TEAM_WORLD_INDEX = 0,
  NVSHMEMX_TEAM_NODE = 2,
  NVSHMEM_TEAM_NODE_INDEX = 2,
  NVSHMEMX_TEAM_SAME_MYPE_NODE = 4,
  NVSHMEM_TEAM_SAME_MYPE_NODE_INDEX = 4,
  NVSHMEMI_TEAM_SAME_GPU = 5,
  NVSHMEM_TEAM_SAME_GPU_INDEX = 5,
  NVSHMEMI_TEAM_GPU_LEADERS = 6,
  NVSHMEM_TEAM_GPU_LEADERS_INDEX = 6,
  NVSHMEM_TEAM_SHARED = 7,
  NVSHMEM_TEAM_SHARED_INDEX = 7,
  NVSHMEM_TEAMS_MIN = 8, /* the first team that a program creates */
  NVSHMEM_TEAM_INDEX_MAX = INT_MAX
} nvshmem_team_id_t;

#define NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS 1L
#define NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID 2L

#endif
