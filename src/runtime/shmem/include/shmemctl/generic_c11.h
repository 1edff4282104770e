/* C11: the type-generic names. The routine is selected by the type of the first pointer argument,
 * which is the second argument if the first is a context or a team. Pointers to const are accepted,
 * too, for routines that only read. */
#ifndef SHMEMCTL_GENERIC_C11_H
#define SHMEMCTL_GENERIC_C11_H

/* Never defined: a call with arguments of a type for which there is no routine refers to it. */
void shmemctl_no_routine_for_this_type(void);

#define SHMEMCTL_FIRST(first, ...) first
#define SHMEMCTL_SECOND(first, second, ...) second
#define SHMEMCTL_CASE(type, function) type* : function, const type* : function

/* The _Generic cases of each table of types. P and OP are the parts of a routine's name before and
 * after the name of the type. The types of a table are distinct; fixed-width types, such as
 * int32_t, are aliases of some of them and need no cases. */

#define SHMEMCTL_RMA_CASES(P, OP)                                                                  \
  SHMEMCTL_CASE(float, P##float##OP), SHMEMCTL_CASE(double, P##double##OP),                        \
      SHMEMCTL_CASE(long double, P##longdouble##OP), SHMEMCTL_CASE(char, P##char##OP),             \
      SHMEMCTL_CASE(signed char, P##schar##OP), SHMEMCTL_CASE(short, P##short##OP),                \
      SHMEMCTL_CASE(int, P##int##OP), SHMEMCTL_CASE(long, P##long##OP),                            \
      SHMEMCTL_CASE(long long, P##longlong##OP), SHMEMCTL_CASE(unsigned char, P##uchar##OP),       \
      SHMEMCTL_CASE(unsigned short, P##ushort##OP), SHMEMCTL_CASE(unsigned int, P##uint##OP),      \
      SHMEMCTL_CASE(unsigned long, P##ulong##OP),                                                  \
      SHMEMCTL_CASE(unsigned long long, P##ulonglong##OP)

#define SHMEMCTL_AMO_CASES(P, OP)                                                                  \
  SHMEMCTL_CASE(int, P##int##OP), SHMEMCTL_CASE(long, P##long##OP),                                \
      SHMEMCTL_CASE(long long, P##longlong##OP), SHMEMCTL_CASE(unsigned int, P##uint##OP),         \
      SHMEMCTL_CASE(unsigned long, P##ulong##OP),                                                  \
      SHMEMCTL_CASE(unsigned long long, P##ulonglong##OP)

#define SHMEMCTL_EXTENDED_CASES(P, OP)                                                             \
  SHMEMCTL_CASE(float, P##float##OP), SHMEMCTL_CASE(double, P##double##OP),                        \
      SHMEMCTL_CASE(int, P##int##OP), SHMEMCTL_CASE(long, P##long##OP),                            \
      SHMEMCTL_CASE(long long, P##longlong##OP), SHMEMCTL_CASE(unsigned int, P##uint##OP),         \
      SHMEMCTL_CASE(unsigned long, P##ulong##OP),                                                  \
      SHMEMCTL_CASE(unsigned long long, P##ulonglong##OP)

#define SHMEMCTL_BITWISE_CASES(P, OP)                                                              \
  SHMEMCTL_CASE(unsigned int, P##uint##OP), SHMEMCTL_CASE(unsigned long, P##ulong##OP),            \
      SHMEMCTL_CASE(unsigned long long, P##ulonglong##OP), SHMEMCTL_CASE(int, P##int32##OP),       \
      SHMEMCTL_CASE(long, P##int64##OP)

#define SHMEMCTL_WAIT_CASES(P, OP)                                                                 \
  SHMEMCTL_CASE(short, P##short##OP), SHMEMCTL_CASE(unsigned short, P##ushort##OP),                \
      SHMEMCTL_CASE(int, P##int##OP), SHMEMCTL_CASE(long, P##long##OP),                            \
      SHMEMCTL_CASE(long long, P##longlong##OP), SHMEMCTL_CASE(unsigned int, P##uint##OP),         \
      SHMEMCTL_CASE(unsigned long, P##ulong##OP),                                                  \
      SHMEMCTL_CASE(unsigned long long, P##ulonglong##OP)

#define SHMEMCTL_REDUCE_BITWISE_CASES(P, OP)                                                       \
  SHMEMCTL_CASE(signed char, P##int8##OP), SHMEMCTL_CASE(short, P##short##OP),                     \
      SHMEMCTL_CASE(int, P##int##OP), SHMEMCTL_CASE(long, P##long##OP),                            \
      SHMEMCTL_CASE(long long, P##longlong##OP), SHMEMCTL_CASE(unsigned char, P##uchar##OP),       \
      SHMEMCTL_CASE(unsigned short, P##ushort##OP), SHMEMCTL_CASE(unsigned int, P##uint##OP),      \
      SHMEMCTL_CASE(unsigned long, P##ulong##OP),                                                  \
      SHMEMCTL_CASE(unsigned long long, P##ulonglong##OP)

#if defined(SHMEMCTL_COMPLEX)
#define SHMEMCTL_NUMBER_CASES(P, OP)                                                               \
  SHMEMCTL_RMA_CASES(P, OP), SHMEMCTL_CASE(double _Complex, P##complexd##OP),                      \
      SHMEMCTL_CASE(float _Complex, P##complexf##OP)
#else
#define SHMEMCTL_NUMBER_CASES(P, OP) SHMEMCTL_RMA_CASES(P, OP)
#endif

/* A routine whose first argument may be a context. */
#define SHMEMCTL_WITH_CONTEXT(TABLE, OP, ...)                                                      \
  _Generic((SHMEMCTL_FIRST(__VA_ARGS__, 0)), shmem_ctx_t                                           \
           : _Generic((SHMEMCTL_SECOND(__VA_ARGS__, 0, 0)),                                        \
                      SHMEMCTL_##TABLE##_CASES(shmem_ctx_, OP), default                            \
                      : shmemctl_no_routine_for_this_type),                                        \
             SHMEMCTL_##TABLE##_CASES(shmem_, OP))(__VA_ARGS__)

/* A routine without a context. */
#define SHMEMCTL_BY_FIRST(TABLE, OP, ...)                                                          \
  _Generic((SHMEMCTL_FIRST(__VA_ARGS__, 0)), SHMEMCTL_##TABLE##_CASES(shmem_, OP))(__VA_ARGS__)

/* A routine whose first argument is a team. */
#define SHMEMCTL_BY_SECOND(TABLE, OP, ...)                                                         \
  _Generic((SHMEMCTL_SECOND(__VA_ARGS__, 0, 0)), SHMEMCTL_##TABLE##_CASES(shmem_, OP))(__VA_ARGS__)

/* Put and get */
#define shmem_put(...) SHMEMCTL_WITH_CONTEXT(RMA, _put, __VA_ARGS__)
#define shmem_get(...) SHMEMCTL_WITH_CONTEXT(RMA, _get, __VA_ARGS__)
#define shmem_put_nbi(...) SHMEMCTL_WITH_CONTEXT(RMA, _put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...) SHMEMCTL_WITH_CONTEXT(RMA, _get_nbi, __VA_ARGS__)
#define shmem_iput(...) SHMEMCTL_WITH_CONTEXT(RMA, _iput, __VA_ARGS__)
#define shmem_iget(...) SHMEMCTL_WITH_CONTEXT(RMA, _iget, __VA_ARGS__)
#define shmem_p(...) SHMEMCTL_WITH_CONTEXT(RMA, _p, __VA_ARGS__)
#define shmem_g(...) SHMEMCTL_WITH_CONTEXT(RMA, _g, __VA_ARGS__)
#define shmem_put_signal(...) SHMEMCTL_WITH_CONTEXT(RMA, _put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) SHMEMCTL_WITH_CONTEXT(RMA, _put_signal_nbi, __VA_ARGS__)

/* Atomics */
#define shmem_atomic_compare_swap(...) SHMEMCTL_WITH_CONTEXT(AMO, _atomic_compare_swap, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...)                                                         \
  SHMEMCTL_WITH_CONTEXT(AMO, _atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) SHMEMCTL_WITH_CONTEXT(AMO, _atomic_fetch_inc, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...)                                                            \
  SHMEMCTL_WITH_CONTEXT(AMO, _atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_inc(...) SHMEMCTL_WITH_CONTEXT(AMO, _atomic_inc, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) SHMEMCTL_WITH_CONTEXT(AMO, _atomic_fetch_add, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...)                                                            \
  SHMEMCTL_WITH_CONTEXT(AMO, _atomic_fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_add(...) SHMEMCTL_WITH_CONTEXT(AMO, _atomic_add, __VA_ARGS__)

#define shmem_atomic_fetch(...) SHMEMCTL_WITH_CONTEXT(EXTENDED, _atomic_fetch, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) SHMEMCTL_WITH_CONTEXT(EXTENDED, _atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_set(...) SHMEMCTL_WITH_CONTEXT(EXTENDED, _atomic_set, __VA_ARGS__)
#define shmem_atomic_swap(...) SHMEMCTL_WITH_CONTEXT(EXTENDED, _atomic_swap, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) SHMEMCTL_WITH_CONTEXT(EXTENDED, _atomic_swap_nbi, __VA_ARGS__)

#define shmem_atomic_fetch_and(...) SHMEMCTL_WITH_CONTEXT(BITWISE, _atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...)                                                            \
  SHMEMCTL_WITH_CONTEXT(BITWISE, _atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_and(...) SHMEMCTL_WITH_CONTEXT(BITWISE, _atomic_and, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) SHMEMCTL_WITH_CONTEXT(BITWISE, _atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...)                                                             \
  SHMEMCTL_WITH_CONTEXT(BITWISE, _atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_or(...) SHMEMCTL_WITH_CONTEXT(BITWISE, _atomic_or, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...) SHMEMCTL_WITH_CONTEXT(BITWISE, _atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...)                                                            \
  SHMEMCTL_WITH_CONTEXT(BITWISE, _atomic_fetch_xor_nbi, __VA_ARGS__)
#define shmem_atomic_xor(...) SHMEMCTL_WITH_CONTEXT(BITWISE, _atomic_xor, __VA_ARGS__)

/* Deprecated names of atomics */
#define shmem_cswap(...) SHMEMCTL_BY_FIRST(AMO, _cswap, __VA_ARGS__)
#define shmem_finc(...) SHMEMCTL_BY_FIRST(AMO, _finc, __VA_ARGS__)
#define shmem_inc(...) SHMEMCTL_BY_FIRST(AMO, _inc, __VA_ARGS__)
#define shmem_fadd(...) SHMEMCTL_BY_FIRST(AMO, _fadd, __VA_ARGS__)
#define shmem_add(...) SHMEMCTL_BY_FIRST(AMO, _add, __VA_ARGS__)

#define shmem_fetch(...) SHMEMCTL_BY_FIRST(EXTENDED, _fetch, __VA_ARGS__)
#define shmem_set(...) SHMEMCTL_BY_FIRST(EXTENDED, _set, __VA_ARGS__)
#define shmem_swap(...) SHMEMCTL_BY_FIRST(EXTENDED, _swap, __VA_ARGS__)

/* Waiting and testing */
#define shmem_wait_until(...) SHMEMCTL_BY_FIRST(WAIT, _wait_until, __VA_ARGS__)
#define shmem_test(...) SHMEMCTL_BY_FIRST(WAIT, _test, __VA_ARGS__)

#define shmem_wait_until_all(...) SHMEMCTL_BY_FIRST(WAIT, _wait_until_all, __VA_ARGS__)
#define shmem_wait_until_all_vector(...)                                                           \
  SHMEMCTL_BY_FIRST(WAIT, _wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any(...) SHMEMCTL_BY_FIRST(WAIT, _wait_until_any, __VA_ARGS__)
#define shmem_wait_until_any_vector(...)                                                           \
  SHMEMCTL_BY_FIRST(WAIT, _wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some(...) SHMEMCTL_BY_FIRST(WAIT, _wait_until_some, __VA_ARGS__)
#define shmem_wait_until_some_vector(...)                                                          \
  SHMEMCTL_BY_FIRST(WAIT, _wait_until_some_vector, __VA_ARGS__)
#define shmem_test_all(...) SHMEMCTL_BY_FIRST(WAIT, _test_all, __VA_ARGS__)
#define shmem_test_all_vector(...) SHMEMCTL_BY_FIRST(WAIT, _test_all_vector, __VA_ARGS__)
#define shmem_test_any(...) SHMEMCTL_BY_FIRST(WAIT, _test_any, __VA_ARGS__)
#define shmem_test_any_vector(...) SHMEMCTL_BY_FIRST(WAIT, _test_any_vector, __VA_ARGS__)
#define shmem_test_some(...) SHMEMCTL_BY_FIRST(WAIT, _test_some, __VA_ARGS__)
#define shmem_test_some_vector(...) SHMEMCTL_BY_FIRST(WAIT, _test_some_vector, __VA_ARGS__)

/* Collectives over teams */
#define shmem_alltoall(...) SHMEMCTL_BY_SECOND(RMA, _alltoall, __VA_ARGS__)
#define shmem_alltoalls(...) SHMEMCTL_BY_SECOND(RMA, _alltoalls, __VA_ARGS__)
#define shmem_broadcast(...) SHMEMCTL_BY_SECOND(RMA, _broadcast, __VA_ARGS__)
#define shmem_collect(...) SHMEMCTL_BY_SECOND(RMA, _collect, __VA_ARGS__)
#define shmem_fcollect(...) SHMEMCTL_BY_SECOND(RMA, _fcollect, __VA_ARGS__)

#define shmem_and_reduce(...) SHMEMCTL_BY_SECOND(REDUCE_BITWISE, _and_reduce, __VA_ARGS__)
#define shmem_or_reduce(...) SHMEMCTL_BY_SECOND(REDUCE_BITWISE, _or_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...) SHMEMCTL_BY_SECOND(REDUCE_BITWISE, _xor_reduce, __VA_ARGS__)

#define shmem_max_reduce(...) SHMEMCTL_BY_SECOND(RMA, _max_reduce, __VA_ARGS__)
#define shmem_min_reduce(...) SHMEMCTL_BY_SECOND(RMA, _min_reduce, __VA_ARGS__)

#define shmem_sum_reduce(...) SHMEMCTL_BY_SECOND(NUMBER, _sum_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...) SHMEMCTL_BY_SECOND(NUMBER, _prod_reduce, __VA_ARGS__)

/* Synchronises a team, or (deprecated) an active set. */
#define shmem_sync(...)                                                                            \
  _Generic((SHMEMCTL_FIRST(__VA_ARGS__, 0)), shmem_team_t                                          \
           : shmem_team_sync, default                                                              \
           : shmem_sync)(__VA_ARGS__)

#endif
