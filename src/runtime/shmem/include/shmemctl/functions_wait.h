/* Point-to-point synchronisation; part of functions.h. */

uint64_t SHMEMCTL_NAME(shmem_signal_fetch)(const uint64_t* sig_addr);
uint64_t SHMEMCTL_NAME(shmem_signal_wait_until)(uint64_t* sig_addr, int cmp, uint64_t cmp_value);

#define SHMEMCTL_X(T, N)                                                                           \
  void SHMEMCTL_NAME(shmem_##N##_wait_until)(T * ivar, int cmp, T cmp_value);                      \
  int SHMEMCTL_NAME(shmem_##N##_test)(T * ivar, int cmp, T cmp_value);
SHMEMCTL_WAIT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

#define SHMEMCTL_X(T, N)                                                                           \
  void SHMEMCTL_NAME(shmem_##N##_wait_until_all)(T * ivars, size_t nelems, const int* status,      \
                                                 int cmp, T cmp_value);                            \
  size_t SHMEMCTL_NAME(shmem_##N##_wait_until_any)(T * ivars, size_t nelems, const int* status,    \
                                                   int cmp, T cmp_value);                          \
  size_t SHMEMCTL_NAME(shmem_##N##_wait_until_some)(T * ivars, size_t nelems, size_t * indices,    \
                                                    const int* status, int cmp, T cmp_value);      \
  void SHMEMCTL_NAME(shmem_##N##_wait_until_all_vector)(                                           \
      T * ivars, size_t nelems, const int* status, int cmp, const T* cmp_values);                  \
  size_t SHMEMCTL_NAME(shmem_##N##_wait_until_any_vector)(                                         \
      T * ivars, size_t nelems, const int* status, int cmp, const T* cmp_values);                  \
  size_t SHMEMCTL_NAME(shmem_##N##_wait_until_some_vector)(T * ivars, size_t nelems,               \
                                                           size_t * indices, const int* status,    \
                                                           int cmp, const T* cmp_values);          \
  int SHMEMCTL_NAME(shmem_##N##_test_all)(T * ivars, size_t nelems, const int* status, int cmp,    \
                                          T cmp_value);                                            \
  size_t SHMEMCTL_NAME(shmem_##N##_test_any)(T * ivars, size_t nelems, const int* status, int cmp, \
                                             T cmp_value);                                         \
  size_t SHMEMCTL_NAME(shmem_##N##_test_some)(T * ivars, size_t nelems, size_t * indices,          \
                                              const int* status, int cmp, T cmp_value);            \
  int SHMEMCTL_NAME(shmem_##N##_test_all_vector)(T * ivars, size_t nelems, const int* status,      \
                                                 int cmp, const T* cmp_values);                    \
  size_t SHMEMCTL_NAME(shmem_##N##_test_any_vector)(T * ivars, size_t nelems, const int* status,   \
                                                    int cmp, const T* cmp_values);                 \
  size_t SHMEMCTL_NAME(shmem_##N##_test_some_vector)(T * ivars, size_t nelems, size_t * indices,   \
                                                     const int* status, int cmp,                   \
                                                     const T* cmp_values);
SHMEMCTL_WAIT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
