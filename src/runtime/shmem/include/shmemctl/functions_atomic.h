/* Atomics; part of functions.h. */

/* Standard types */
#define SHMEMCTL_X(T, N)                                                                           \
  T SHMEMCTL_NAME(shmem_##N##_atomic_compare_swap)(T * dest, T cond, T value, int pe);             \
  T SHMEMCTL_NAME(shmem_ctx_##N##_atomic_compare_swap)(shmem_ctx_t ctx, T * dest, T cond, T value, \
                                                       int pe);                                    \
  void SHMEMCTL_NAME(shmem_##N##_atomic_compare_swap_nbi)(T * fetch, T * dest, T cond, T value,    \
                                                          int pe);                                 \
  void SHMEMCTL_NAME(shmem_ctx_##N##_atomic_compare_swap_nbi)(shmem_ctx_t ctx, T * fetch,          \
                                                              T * dest, T cond, T value, int pe);  \
  T SHMEMCTL_NAME(shmem_##N##_atomic_fetch_inc)(T * dest, int pe);                                 \
  T SHMEMCTL_NAME(shmem_ctx_##N##_atomic_fetch_inc)(shmem_ctx_t ctx, T * dest, int pe);            \
  void SHMEMCTL_NAME(shmem_##N##_atomic_fetch_inc_nbi)(T * fetch, T * dest, int pe);               \
  void SHMEMCTL_NAME(shmem_ctx_##N##_atomic_fetch_inc_nbi)(shmem_ctx_t ctx, T * fetch, T * dest,   \
                                                           int pe);                                \
  void SHMEMCTL_NAME(shmem_##N##_atomic_inc)(T * dest, int pe);                                    \
  void SHMEMCTL_NAME(shmem_ctx_##N##_atomic_inc)(shmem_ctx_t ctx, T * dest, int pe);               \
  T SHMEMCTL_NAME(shmem_##N##_atomic_fetch_add)(T * dest, T value, int pe);                        \
  T SHMEMCTL_NAME(shmem_ctx_##N##_atomic_fetch_add)(shmem_ctx_t ctx, T * dest, T value, int pe);   \
  void SHMEMCTL_NAME(shmem_##N##_atomic_fetch_add_nbi)(T * fetch, T * dest, T value, int pe);      \
  void SHMEMCTL_NAME(shmem_ctx_##N##_atomic_fetch_add_nbi)(shmem_ctx_t ctx, T * fetch, T * dest,   \
                                                           T value, int pe);                       \
  void SHMEMCTL_NAME(shmem_##N##_atomic_add)(T * dest, T value, int pe);                           \
  void SHMEMCTL_NAME(shmem_ctx_##N##_atomic_add)(shmem_ctx_t ctx, T * dest, T value, int pe);
SHMEMCTL_AMO_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

/* Extended types */
#define SHMEMCTL_X(T, N)                                                                           \
  T SHMEMCTL_NAME(shmem_##N##_atomic_fetch)(const T* source, int pe);                              \
  T SHMEMCTL_NAME(shmem_ctx_##N##_atomic_fetch)(shmem_ctx_t ctx, const T* source, int pe);         \
  void SHMEMCTL_NAME(shmem_##N##_atomic_fetch_nbi)(T * fetch, const T* source, int pe);            \
  void SHMEMCTL_NAME(shmem_ctx_##N##_atomic_fetch_nbi)(shmem_ctx_t ctx, T * fetch,                 \
                                                       const T* source, int pe);                   \
  void SHMEMCTL_NAME(shmem_##N##_atomic_set)(T * dest, T value, int pe);                           \
  void SHMEMCTL_NAME(shmem_ctx_##N##_atomic_set)(shmem_ctx_t ctx, T * dest, T value, int pe);      \
  T SHMEMCTL_NAME(shmem_##N##_atomic_swap)(T * dest, T value, int pe);                             \
  T SHMEMCTL_NAME(shmem_ctx_##N##_atomic_swap)(shmem_ctx_t ctx, T * dest, T value, int pe);        \
  void SHMEMCTL_NAME(shmem_##N##_atomic_swap_nbi)(T * fetch, T * dest, T value, int pe);           \
  void SHMEMCTL_NAME(shmem_ctx_##N##_atomic_swap_nbi)(shmem_ctx_t ctx, T * fetch, T * dest,        \
                                                      T value, int pe);
SHMEMCTL_EXTENDED_AMO_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

/* Bitwise types */
#define SHMEMCTL_BITWISE(T, N, OP)                                                                 \
  T SHMEMCTL_NAME(shmem_##N##_atomic_fetch_##OP)(T * dest, T value, int pe);                       \
  T SHMEMCTL_NAME(shmem_ctx_##N##_atomic_fetch_##OP)(shmem_ctx_t ctx, T * dest, T value, int pe);  \
  void SHMEMCTL_NAME(shmem_##N##_atomic_fetch_##OP##_nbi)(T * fetch, T * dest, T value, int pe);   \
  void SHMEMCTL_NAME(shmem_ctx_##N##_atomic_fetch_##OP##_nbi)(shmem_ctx_t ctx, T * fetch,          \
                                                              T * dest, T value, int pe);          \
  void SHMEMCTL_NAME(shmem_##N##_atomic_##OP)(T * dest, T value, int pe);                          \
  void SHMEMCTL_NAME(shmem_ctx_##N##_atomic_##OP)(shmem_ctx_t ctx, T * dest, T value, int pe);
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_BITWISE(T, N, and) SHMEMCTL_BITWISE(T, N, or) SHMEMCTL_BITWISE(T, N, xor)
SHMEMCTL_BITWISE_AMO_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#undef SHMEMCTL_BITWISE
