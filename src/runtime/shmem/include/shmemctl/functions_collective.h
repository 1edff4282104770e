/* Collectives over teams; part of functions.h. */

#define SHMEMCTL_X(T, N)                                                                           \
  int SHMEMCTL_NAME(shmem_##N##_alltoall)(shmem_team_t team, T * dest, const T* source,            \
                                          size_t nelems);                                          \
  int SHMEMCTL_NAME(shmem_##N##_alltoalls)(shmem_team_t team, T * dest, const T* source,           \
                                           ptrdiff_t dst, ptrdiff_t sst, size_t nelems);           \
  int SHMEMCTL_NAME(shmem_##N##_broadcast)(shmem_team_t team, T * dest, const T* source,           \
                                           size_t nelems, int PE_root);                            \
  int SHMEMCTL_NAME(shmem_##N##_collect)(shmem_team_t team, T * dest, const T* source,             \
                                         size_t nelems);                                           \
  int SHMEMCTL_NAME(shmem_##N##_fcollect)(shmem_team_t team, T * dest, const T* source,            \
                                          size_t nelems);
SHMEMCTL_RMA_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
int SHMEMCTL_NAME(shmem_alltoallmem)(shmem_team_t team, void* dest, const void* source,
                                     size_t nelems);
int SHMEMCTL_NAME(shmem_alltoallsmem)(shmem_team_t team, void* dest, const void* source,
                                      ptrdiff_t dst, ptrdiff_t sst, size_t nelems);
int SHMEMCTL_NAME(shmem_broadcastmem)(shmem_team_t team, void* dest, const void* source,
                                      size_t nelems, int PE_root);
int SHMEMCTL_NAME(shmem_collectmem)(shmem_team_t team, void* dest, const void* source,
                                    size_t nelems);
int SHMEMCTL_NAME(shmem_fcollectmem)(shmem_team_t team, void* dest, const void* source,
                                     size_t nelems);

#define SHMEMCTL_REDUCE(T, N, OP)                                                                  \
  int SHMEMCTL_NAME(shmem_##N##_##OP##_reduce)(shmem_team_t team, T * dest, const T* source,       \
                                               size_t nreduce);
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_REDUCE(T, N, and) SHMEMCTL_REDUCE(T, N, or) SHMEMCTL_REDUCE(T, N, xor)
SHMEMCTL_REDUCE_BITWISE_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N) SHMEMCTL_REDUCE(T, N, max) SHMEMCTL_REDUCE(T, N, min)
SHMEMCTL_REDUCE_COMPARABLE_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N) SHMEMCTL_REDUCE(T, N, sum) SHMEMCTL_REDUCE(T, N, prod)
SHMEMCTL_REDUCE_NUMBER_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#undef SHMEMCTL_REDUCE
