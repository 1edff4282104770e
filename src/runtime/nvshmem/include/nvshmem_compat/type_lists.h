/* NVSHMEM's tables of types, as lists: X(type, name) for each row. A family of functions is one
 * macro over a list. */
#ifndef NVSHMEM_COMPAT_TYPE_LISTS_H
#define NVSHMEM_COMPAT_TYPE_LISTS_H

/* C has no half types, so C programs get only the other rows. */
#ifdef __cplusplus
#define NVSHMEM_COMPAT_HALF_TYPES(X)                                                               \
  X(__nv_bfloat16, bfloat16)                                                                       \
  X(__half, half)
#else
#define NVSHMEM_COMPAT_HALF_TYPES(X)
#endif
#define NVSHMEM_COMPAT_FLOAT_TYPES(X)                                                              \
  X(float, float)                                                                                  \
  X(double, double)
#define NVSHMEM_COMPAT_SIGNED_TYPES(X)                                                             \
  X(short, short)                                                                                  \
  X(int, int)                                                                                      \
  X(long, long)                                                                                    \
  X(long long, longlong)
#define NVSHMEM_COMPAT_UNSIGNED_TYPES(X)                                                           \
  X(unsigned short, ushort)                                                                        \
  X(unsigned int, uint)                                                                            \
  X(unsigned long, ulong)                                                                          \
  X(unsigned long long, ulonglong)
#define NVSHMEM_COMPAT_FIXED_TYPES(X)                                                              \
  X(int8_t, int8)                                                                                  \
  X(int16_t, int16)                                                                                \
  X(int32_t, int32)                                                                                \
  X(int64_t, int64)                                                                                \
  X(uint8_t, uint8)                                                                                \
  X(uint16_t, uint16)                                                                              \
  X(uint32_t, uint32)                                                                              \
  X(uint64_t, uint64)
#define NVSHMEM_COMPAT_CHAR_TYPES(X)                                                               \
  X(char, char)                                                                                    \
  X(signed char, schar)                                                                            \
  X(unsigned char, uchar)

/* Types of put, get, p, g, and of collectives that move data: 25 rows. */
#define NVSHMEM_COMPAT_RMA_TYPES(X)                                                                \
  NVSHMEM_COMPAT_HALF_TYPES(X)                                                                     \
  NVSHMEM_COMPAT_FLOAT_TYPES(X)                                                                    \
  NVSHMEM_COMPAT_CHAR_TYPES(X)                                                                     \
  NVSHMEM_COMPAT_SIGNED_TYPES(X)                                                                   \
  NVSHMEM_COMPAT_UNSIGNED_TYPES(X)                                                                 \
  NVSHMEM_COMPAT_FIXED_TYPES(X)                                                                    \
  X(size_t, size)                                                                                  \
  X(ptrdiff_t, ptrdiff)

/* X(bits, bytes): put8 to put128, and so on. */
#define NVSHMEM_COMPAT_SIZES(X) X(8, 1) X(16, 2) X(32, 4) X(64, 8) X(128, 16)

/* Types of atomics: those of and/or/xor; of inc/add/compare_swap; of fetch/set/swap. */
#define NVSHMEM_COMPAT_AMO_BITWISE_TYPES(X)                                                        \
  X(unsigned int, uint)                                                                            \
  X(unsigned long, ulong)                                                                          \
  X(unsigned long long, ulonglong)                                                                 \
  X(int32_t, int32)                                                                                \
  X(int64_t, int64)                                                                                \
  X(uint32_t, uint32)                                                                              \
  X(uint64_t, uint64)
#define NVSHMEM_COMPAT_AMO_TYPES(X)                                                                \
  NVSHMEM_COMPAT_AMO_BITWISE_TYPES(X)                                                              \
  X(int, int)                                                                                      \
  X(long, long)                                                                                    \
  X(long long, longlong)                                                                           \
  X(size_t, size)                                                                                  \
  X(ptrdiff_t, ptrdiff)
#define NVSHMEM_COMPAT_AMO_EXTENDED_TYPES(X)                                                       \
  NVSHMEM_COMPAT_AMO_TYPES(X)                                                                      \
  NVSHMEM_COMPAT_FLOAT_TYPES(X)

/* Types of wait_until and test. */
#define NVSHMEM_COMPAT_WAIT_TYPES(X)                                                               \
  NVSHMEM_COMPAT_SIGNED_TYPES(X)                                                                   \
  NVSHMEM_COMPAT_UNSIGNED_TYPES(X)                                                                 \
  X(int32_t, int32)                                                                                \
  X(int64_t, int64)                                                                                \
  X(uint32_t, uint32)                                                                              \
  X(uint64_t, uint64)                                                                              \
  X(size_t, size)                                                                                  \
  X(ptrdiff_t, ptrdiff)

/* Types of reductions: those of and/or/xor; of min/max/sum/prod. */
#define NVSHMEM_COMPAT_REDUCE_BITWISE_TYPES(X)                                                     \
  X(unsigned char, uchar)                                                                          \
  NVSHMEM_COMPAT_UNSIGNED_TYPES(X)                                                                 \
  NVSHMEM_COMPAT_FIXED_TYPES(X)                                                                    \
  X(size_t, size)
#define NVSHMEM_COMPAT_REDUCE_TYPES(X)                                                             \
  NVSHMEM_COMPAT_REDUCE_BITWISE_TYPES(X)                                                           \
  X(char, char)                                                                                    \
  X(signed char, schar)                                                                            \
  NVSHMEM_COMPAT_SIGNED_TYPES(X)                                                                   \
  NVSHMEM_COMPAT_HALF_TYPES(X)                                                                     \
  NVSHMEM_COMPAT_FLOAT_TYPES(X)

#endif
