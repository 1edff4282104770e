/* Functions that the specification has deprecated or (the cache routines) removed; part of
 * functions.h. */

void SHMEMCTL_NAME(start_pes)(int npes);
int SHMEMCTL_NAME(_my_pe)(void);
int SHMEMCTL_NAME(_num_pes)(void);
void* SHMEMCTL_NAME(shmalloc)(size_t size);
void SHMEMCTL_NAME(shfree)(void* ptr);
void* SHMEMCTL_NAME(shrealloc)(void* ptr, size_t size);
void* SHMEMCTL_NAME(shmemalign)(size_t alignment, size_t size);

void SHMEMCTL_NAME(shmem_set_cache_inv)(void);
void SHMEMCTL_NAME(shmem_set_cache_line_inv)(void* target);
void SHMEMCTL_NAME(shmem_clear_cache_inv)(void);
void SHMEMCTL_NAME(shmem_clear_cache_line_inv)(void* target);
void SHMEMCTL_NAME(shmem_udcflush)(void);
void SHMEMCTL_NAME(shmem_udcflush_line)(void* target);

#define SHMEMCTL_X(T, N)                                                                           \
  T SHMEMCTL_NAME(shmem_##N##_cswap)(T * dest, T cond, T value, int pe);                           \
  T SHMEMCTL_NAME(shmem_##N##_finc)(T * dest, int pe);                                             \
  void SHMEMCTL_NAME(shmem_##N##_inc)(T * dest, int pe);                                           \
  T SHMEMCTL_NAME(shmem_##N##_fadd)(T * dest, T value, int pe);                                    \
  void SHMEMCTL_NAME(shmem_##N##_add)(T * dest, T value, int pe);
SHMEMCTL_AMO_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N)                                                                           \
  T SHMEMCTL_NAME(shmem_##N##_fetch)(const T* source, int pe);                                     \
  void SHMEMCTL_NAME(shmem_##N##_set)(T * dest, T value, int pe);                                  \
  T SHMEMCTL_NAME(shmem_##N##_swap)(T * dest, T value, int pe);
SHMEMCTL_EXTENDED_AMO_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

void SHMEMCTL_NAME(shmem_wait_until)(long* ivar, int cmp, long cmp_value);
void SHMEMCTL_NAME(shmem_wait)(long* ivar, long cmp_value);
#define SHMEMCTL_X(T, N) void SHMEMCTL_NAME(shmem_##N##_wait)(T * ivar, T cmp_value);
SHMEMCTL_OLD_WAIT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

/* Collectives over active sets */
void SHMEMCTL_NAME(shmem_barrier)(int PE_start, int logPE_stride, int PE_size, long* pSync);
void SHMEMCTL_NAME(shmem_sync)(int PE_start, int logPE_stride, int PE_size, long* pSync);
#define SHMEMCTL_X(N)                                                                              \
  void SHMEMCTL_NAME(shmem_broadcast##N)(void* dest, const void* source, size_t nelems,            \
                                         int PE_root, int PE_start, int logPE_stride, int PE_size, \
                                         long* pSync);                                             \
  void SHMEMCTL_NAME(shmem_collect##N)(void* dest, const void* source, size_t nelems,              \
                                       int PE_start, int logPE_stride, int PE_size, long* pSync);  \
  void SHMEMCTL_NAME(shmem_fcollect##N)(void* dest, const void* source, size_t nelems,             \
                                        int PE_start, int logPE_stride, int PE_size, long* pSync); \
  void SHMEMCTL_NAME(shmem_alltoall##N)(void* dest, const void* source, size_t nelems,             \
                                        int PE_start, int logPE_stride, int PE_size, long* pSync); \
  void SHMEMCTL_NAME(shmem_alltoalls##N)(void* dest, const void* source, ptrdiff_t dst,            \
                                         ptrdiff_t sst, size_t nelems, int PE_start,               \
                                         int logPE_stride, int PE_size, long* pSync);
SHMEMCTL_X(32)
SHMEMCTL_X(64)
#undef SHMEMCTL_X

#define SHMEMCTL_TO_ALL(T, N, OP)                                                                  \
  void SHMEMCTL_NAME(shmem_##N##_##OP##_to_all)(T * dest, const T* source, int nreduce,            \
                                                int PE_start, int logPE_stride, int PE_size,       \
                                                T* pWrk, long* pSync);
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_TO_ALL(T, N, and) SHMEMCTL_TO_ALL(T, N, or) SHMEMCTL_TO_ALL(T, N, xor)
SHMEMCTL_TO_ALL_BITWISE_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N) SHMEMCTL_TO_ALL(T, N, max) SHMEMCTL_TO_ALL(T, N, min)
SHMEMCTL_TO_ALL_COMPARABLE_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N) SHMEMCTL_TO_ALL(T, N, sum) SHMEMCTL_TO_ALL(T, N, prod)
SHMEMCTL_TO_ALL_NUMBER_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#undef SHMEMCTL_TO_ALL
