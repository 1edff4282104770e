/* C++: the type-generic names as overloads. */
#ifndef SHMEMCTL_GENERIC_CXX_H
#define SHMEMCTL_GENERIC_CXX_H

/* Every overload passes its arguments on to the routine of its type, with or without a leading
 * context. `formal` are the parameters and `actual` their names, each list in parentheses. */
#define SHMEMCTL_UNWRAP(...) __VA_ARGS__
#define SHMEMCTL_PLAIN(result, name, routine, formal, actual)                                      \
  inline result name(SHMEMCTL_UNWRAP formal) {                                                     \
    return routine(SHMEMCTL_UNWRAP actual);                                                        \
  }
#define SHMEMCTL_BOTH(result, N, OP, formal, actual)                                               \
  SHMEMCTL_PLAIN(result, shmem_##OP, shmem_##N##_##OP, formal, actual)                             \
  inline result shmem_##OP(shmem_ctx_t ctx, SHMEMCTL_UNWRAP formal) {                              \
    return shmem_ctx_##N##_##OP(ctx, SHMEMCTL_UNWRAP actual);                                      \
  }

/* Put and get */
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_BOTH(void, N, put, (T * dest, const T* source, size_t nelems, int pe),                  \
                (dest, source, nelems, pe))                                                        \
  SHMEMCTL_BOTH(void, N, get, (T * dest, const T* source, size_t nelems, int pe),                  \
                (dest, source, nelems, pe))                                                        \
  SHMEMCTL_BOTH(void, N, put_nbi, (T * dest, const T* source, size_t nelems, int pe),              \
                (dest, source, nelems, pe))                                                        \
  SHMEMCTL_BOTH(void, N, get_nbi, (T * dest, const T* source, size_t nelems, int pe),              \
                (dest, source, nelems, pe))                                                        \
  SHMEMCTL_BOTH(void, N, iput,                                                                     \
                (T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),  \
                (dest, source, dst, sst, nelems, pe))                                              \
  SHMEMCTL_BOTH(void, N, iget,                                                                     \
                (T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),  \
                (dest, source, dst, sst, nelems, pe))                                              \
  SHMEMCTL_BOTH(void, N, p, (T * dest, T value, int pe), (dest, value, pe))                        \
  SHMEMCTL_BOTH(T, N, g, (const T* source, int pe), (source, pe))                                  \
  SHMEMCTL_BOTH(void, N, put_signal,                                                               \
                (T * dest, const T* source, size_t nelems, uint64_t* sig_addr, uint64_t signal,    \
                 int sig_op, int pe),                                                              \
                (dest, source, nelems, sig_addr, signal, sig_op, pe))                              \
  SHMEMCTL_BOTH(void, N, put_signal_nbi,                                                           \
                (T * dest, const T* source, size_t nelems, uint64_t* sig_addr, uint64_t signal,    \
                 int sig_op, int pe),                                                              \
                (dest, source, nelems, sig_addr, signal, sig_op, pe))
SHMEMCTL_DISTINCT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

/* Atomics */
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_BOTH(T, N, atomic_compare_swap, (T * dest, T cond, T value, int pe),                    \
                (dest, cond, value, pe))                                                           \
  SHMEMCTL_BOTH(void, N, atomic_compare_swap_nbi, (T * fetch, T * dest, T cond, T value, int pe),  \
                (fetch, dest, cond, value, pe))                                                    \
  SHMEMCTL_BOTH(T, N, atomic_fetch_inc, (T * dest, int pe), (dest, pe))                            \
  SHMEMCTL_BOTH(void, N, atomic_fetch_inc_nbi, (T * fetch, T * dest, int pe), (fetch, dest, pe))   \
  SHMEMCTL_BOTH(void, N, atomic_inc, (T * dest, int pe), (dest, pe))                               \
  SHMEMCTL_BOTH(T, N, atomic_fetch_add, (T * dest, T value, int pe), (dest, value, pe))            \
  SHMEMCTL_BOTH(void, N, atomic_fetch_add_nbi, (T * fetch, T * dest, T value, int pe),             \
                (fetch, dest, value, pe))                                                          \
  SHMEMCTL_BOTH(void, N, atomic_add, (T * dest, T value, int pe), (dest, value, pe))
SHMEMCTL_AMO_DISTINCT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_BOTH(T, N, atomic_fetch, (const T* source, int pe), (source, pe))                       \
  SHMEMCTL_BOTH(void, N, atomic_fetch_nbi, (T * fetch, const T* source, int pe),                   \
                (fetch, source, pe))                                                               \
  SHMEMCTL_BOTH(void, N, atomic_set, (T * dest, T value, int pe), (dest, value, pe))               \
  SHMEMCTL_BOTH(T, N, atomic_swap, (T * dest, T value, int pe), (dest, value, pe))                 \
  SHMEMCTL_BOTH(void, N, atomic_swap_nbi, (T * fetch, T * dest, T value, int pe),                  \
                (fetch, dest, value, pe))
SHMEMCTL_X(float, float)
SHMEMCTL_X(double, double)
SHMEMCTL_AMO_DISTINCT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

#define SHMEMCTL_BITWISE(T, N, OP)                                                                 \
  SHMEMCTL_BOTH(T, N, atomic_fetch_##OP, (T * dest, T value, int pe), (dest, value, pe))           \
  SHMEMCTL_BOTH(void, N, atomic_fetch_##OP##_nbi, (T * fetch, T * dest, T value, int pe),          \
                (fetch, dest, value, pe))                                                          \
  SHMEMCTL_BOTH(void, N, atomic_##OP, (T * dest, T value, int pe), (dest, value, pe))
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_BITWISE(T, N, and) SHMEMCTL_BITWISE(T, N, or) SHMEMCTL_BITWISE(T, N, xor)
SHMEMCTL_X(unsigned int, uint)
SHMEMCTL_X(unsigned long, ulong)
SHMEMCTL_X(unsigned long long, ulonglong)
SHMEMCTL_X(int32_t, int32)
SHMEMCTL_X(int64_t, int64)
#undef SHMEMCTL_X
#undef SHMEMCTL_BITWISE

/* Deprecated names of atomics */
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_PLAIN(T, shmem_cswap, shmem_##N##_cswap, (T * dest, T cond, T value, int pe),           \
                 (dest, cond, value, pe))                                                          \
  SHMEMCTL_PLAIN(T, shmem_finc, shmem_##N##_finc, (T * dest, int pe), (dest, pe))                  \
  SHMEMCTL_PLAIN(void, shmem_inc, shmem_##N##_inc, (T * dest, int pe), (dest, pe))                 \
  SHMEMCTL_PLAIN(T, shmem_fadd, shmem_##N##_fadd, (T * dest, T value, int pe), (dest, value, pe))  \
  SHMEMCTL_PLAIN(void, shmem_add, shmem_##N##_add, (T * dest, T value, int pe), (dest, value, pe))
SHMEMCTL_AMO_DISTINCT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_PLAIN(T, shmem_fetch, shmem_##N##_fetch, (const T* source, int pe), (source, pe))       \
  SHMEMCTL_PLAIN(void, shmem_set, shmem_##N##_set, (T * dest, T value, int pe), (dest, value, pe)) \
  SHMEMCTL_PLAIN(T, shmem_swap, shmem_##N##_swap, (T * dest, T value, int pe), (dest, value, pe))
SHMEMCTL_X(float, float)
SHMEMCTL_X(double, double)
SHMEMCTL_AMO_DISTINCT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

/* Waiting and testing. The routine for long is itself called shmem_wait_until. */
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_PLAIN(void, shmem_wait_until, shmem_##N##_wait_until, (T * ivar, int cmp, T cmp_value), \
                 (ivar, cmp, cmp_value))
SHMEMCTL_X(short, short)
SHMEMCTL_X(unsigned short, ushort)
SHMEMCTL_X(int, int)
SHMEMCTL_X(long long, longlong)
SHMEMCTL_X(unsigned int, uint)
SHMEMCTL_X(unsigned long, ulong)
SHMEMCTL_X(unsigned long long, ulonglong)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_PLAIN(int, shmem_test, shmem_##N##_test, (T * ivar, int cmp, T cmp_value),              \
                 (ivar, cmp, cmp_value))
SHMEMCTL_X(short, short)
SHMEMCTL_X(unsigned short, ushort)
SHMEMCTL_AMO_DISTINCT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

#define SHMEMCTL_SEVERAL(T, N, result, OP)                                                         \
  SHMEMCTL_PLAIN(result, shmem_##OP, shmem_##N##_##OP,                                             \
                 (T * ivars, size_t nelems, const int* status, int cmp, T cmp_value),              \
                 (ivars, nelems, status, cmp, cmp_value))                                          \
  SHMEMCTL_PLAIN(result, shmem_##OP##_vector, shmem_##N##_##OP##_vector,                           \
                 (T * ivars, size_t nelems, const int* status, int cmp, const T* cmp_values),      \
                 (ivars, nelems, status, cmp, cmp_values))
#define SHMEMCTL_SOME(T, N, OP)                                                                    \
  SHMEMCTL_PLAIN(                                                                                  \
      size_t, shmem_##OP, shmem_##N##_##OP,                                                        \
      (T * ivars, size_t nelems, size_t * indices, const int* status, int cmp, T cmp_value),       \
      (ivars, nelems, indices, status, cmp, cmp_value))                                            \
  SHMEMCTL_PLAIN(size_t, shmem_##OP##_vector, shmem_##N##_##OP##_vector,                           \
                 (T * ivars, size_t nelems, size_t * indices, const int* status, int cmp,          \
                  const T* cmp_values),                                                            \
                 (ivars, nelems, indices, status, cmp, cmp_values))
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_SEVERAL(T, N, void, wait_until_all)                                                     \
  SHMEMCTL_SEVERAL(T, N, size_t, wait_until_any)                                                   \
  SHMEMCTL_SOME(T, N, wait_until_some)                                                             \
  SHMEMCTL_SEVERAL(T, N, int, test_all)                                                            \
  SHMEMCTL_SEVERAL(T, N, size_t, test_any)                                                         \
  SHMEMCTL_SOME(T, N, test_some)
SHMEMCTL_X(short, short)
SHMEMCTL_X(unsigned short, ushort)
SHMEMCTL_AMO_DISTINCT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#undef SHMEMCTL_SEVERAL
#undef SHMEMCTL_SOME

/* Collectives over teams */
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_PLAIN(int, shmem_alltoall, shmem_##N##_alltoall,                                        \
                 (shmem_team_t team, T * dest, const T* source, size_t nelems),                    \
                 (team, dest, source, nelems))                                                     \
  SHMEMCTL_PLAIN(                                                                                  \
      int, shmem_alltoalls, shmem_##N##_alltoalls,                                                 \
      (shmem_team_t team, T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems), \
      (team, dest, source, dst, sst, nelems))                                                      \
  SHMEMCTL_PLAIN(int, shmem_broadcast, shmem_##N##_broadcast,                                      \
                 (shmem_team_t team, T * dest, const T* source, size_t nelems, int PE_root),       \
                 (team, dest, source, nelems, PE_root))                                            \
  SHMEMCTL_PLAIN(int, shmem_collect, shmem_##N##_collect,                                          \
                 (shmem_team_t team, T * dest, const T* source, size_t nelems),                    \
                 (team, dest, source, nelems))                                                     \
  SHMEMCTL_PLAIN(int, shmem_fcollect, shmem_##N##_fcollect,                                        \
                 (shmem_team_t team, T * dest, const T* source, size_t nelems),                    \
                 (team, dest, source, nelems))
SHMEMCTL_DISTINCT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X

#define SHMEMCTL_REDUCE(T, N, OP)                                                                  \
  SHMEMCTL_PLAIN(int, shmem_##OP##_reduce, shmem_##N##_##OP##_reduce,                              \
                 (shmem_team_t team, T * dest, const T* source, size_t nreduce),                   \
                 (team, dest, source, nreduce))
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_REDUCE(T, N, and) SHMEMCTL_REDUCE(T, N, or) SHMEMCTL_REDUCE(T, N, xor)
SHMEMCTL_X(int8_t, int8)
SHMEMCTL_X(short, short)
SHMEMCTL_X(int, int)
SHMEMCTL_X(long, long)
SHMEMCTL_X(long long, longlong)
SHMEMCTL_X(unsigned char, uchar)
SHMEMCTL_X(unsigned short, ushort)
SHMEMCTL_X(unsigned int, uint)
SHMEMCTL_X(unsigned long, ulong)
SHMEMCTL_X(unsigned long long, ulonglong)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N)                                                                           \
  SHMEMCTL_REDUCE(T, N, max)                                                                       \
  SHMEMCTL_REDUCE(T, N, min) SHMEMCTL_REDUCE(T, N, sum) SHMEMCTL_REDUCE(T, N, prod)
SHMEMCTL_DISTINCT_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#define SHMEMCTL_X(T, N) SHMEMCTL_REDUCE(T, N, sum) SHMEMCTL_REDUCE(T, N, prod)
SHMEMCTL_COMPLEX_TYPES(SHMEMCTL_X)
#undef SHMEMCTL_X
#undef SHMEMCTL_REDUCE

/* The complex types of C, which these compilers support in C++ too. Their layout is that of
 * std::complex. */
#if defined(__GNUC__)
__extension__ typedef double _Complex shmemctl_c_complexd;
__extension__ typedef float _Complex shmemctl_c_complexf;
#define SHMEMCTL_C_COMPLEX(N, OP)                                                                  \
  inline int shmem_##N##_##OP##_reduce(shmem_team_t team, shmemctl_c_##N* dest,                    \
                                       const shmemctl_c_##N* source, size_t nreduce) {             \
    return shmem_##N##_##OP##_reduce(team, reinterpret_cast<shmemctl_##N*>(dest),                  \
                                     reinterpret_cast<const shmemctl_##N*>(source), nreduce);      \
  }                                                                                                \
  inline int shmem_##OP##_reduce(shmem_team_t team, shmemctl_c_##N* dest,                          \
                                 const shmemctl_c_##N* source, size_t nreduce) {                   \
    return shmem_##N##_##OP##_reduce(team, dest, source, nreduce);                                 \
  }                                                                                                \
  inline void shmem_##N##_##OP##_to_all(shmemctl_c_##N* dest, const shmemctl_c_##N* source,        \
                                        int nreduce, int PE_start, int logPE_stride, int PE_size,  \
                                        shmemctl_c_##N* pWrk, long* pSync) {                       \
    shmem_##N##_##OP##_to_all(                                                                     \
        reinterpret_cast<shmemctl_##N*>(dest), reinterpret_cast<const shmemctl_##N*>(source),      \
        nreduce, PE_start, logPE_stride, PE_size, reinterpret_cast<shmemctl_##N*>(pWrk), pSync);   \
  }
SHMEMCTL_C_COMPLEX(complexd, sum)
SHMEMCTL_C_COMPLEX(complexd, prod)
SHMEMCTL_C_COMPLEX(complexf, sum)
SHMEMCTL_C_COMPLEX(complexf, prod)
#undef SHMEMCTL_C_COMPLEX
#endif

/* Synchronises a team; the deprecated routine over an active set has the same name. */
inline int shmem_sync(shmem_team_t team) {
  return shmem_team_sync(team);
}

#undef SHMEMCTL_BOTH
#undef SHMEMCTL_PLAIN
#undef SHMEMCTL_UNWRAP

#endif
