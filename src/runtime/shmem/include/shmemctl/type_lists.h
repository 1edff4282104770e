/* The specification's tables of types, as lists: X(type, name) for each row. */
#ifndef SHMEMCTL_TYPE_LISTS_H
#define SHMEMCTL_TYPE_LISTS_H

/* C types that are distinct; the other names in the tables are aliases of these. */
#define SHMEMCTL_DISTINCT_TYPES(X)                                                                 \
  X(float, float)                                                                                  \
  X(double, double)                                                                                \
  X(long double, longdouble)                                                                       \
  X(char, char)                                                                                    \
  X(signed char, schar)                                                                            \
  X(short, short)                                                                                  \
  X(int, int)                                                                                      \
  X(long, long)                                                                                    \
  X(long long, longlong)                                                                           \
  X(unsigned char, uchar)                                                                          \
  X(unsigned short, ushort)                                                                        \
  X(unsigned int, uint)                                                                            \
  X(unsigned long, ulong)                                                                          \
  X(unsigned long long, ulonglong)

#define SHMEMCTL_FIXED_TYPES(X)                                                                    \
  X(int8_t, int8)                                                                                  \
  X(int16_t, int16)                                                                                \
  X(int32_t, int32)                                                                                \
  X(int64_t, int64)                                                                                \
  X(uint8_t, uint8)                                                                                \
  X(uint16_t, uint16)                                                                              \
  X(uint32_t, uint32)                                                                              \
  X(uint64_t, uint64)

/* Standard RMA types. */
#define SHMEMCTL_RMA_TYPES(X)                                                                      \
  SHMEMCTL_DISTINCT_TYPES(X)                                                                       \
  SHMEMCTL_FIXED_TYPES(X)                                                                          \
  X(size_t, size)                                                                                  \
  X(ptrdiff_t, ptrdiff)

/* X(bits, bytes): the routines of fixed size. */
#define SHMEMCTL_SIZES(X) X(8, 1) X(16, 2) X(32, 4) X(64, 8) X(128, 16)

/* Standard AMO types: the distinct ones, and all. */
#define SHMEMCTL_AMO_DISTINCT_TYPES(X)                                                             \
  X(int, int)                                                                                      \
  X(long, long)                                                                                    \
  X(long long, longlong)                                                                           \
  X(unsigned int, uint)                                                                            \
  X(unsigned long, ulong)                                                                          \
  X(unsigned long long, ulonglong)
#define SHMEMCTL_AMO_TYPES(X)                                                                      \
  SHMEMCTL_AMO_DISTINCT_TYPES(X)                                                                   \
  X(int32_t, int32)                                                                                \
  X(int64_t, int64)                                                                                \
  X(uint32_t, uint32)                                                                              \
  X(uint64_t, uint64)                                                                              \
  X(size_t, size)                                                                                  \
  X(ptrdiff_t, ptrdiff)

/* Extended AMO types: fetch, set and swap. */
#define SHMEMCTL_EXTENDED_AMO_TYPES(X)                                                             \
  X(float, float)                                                                                  \
  X(double, double)                                                                                \
  SHMEMCTL_AMO_TYPES(X)

/* Bitwise AMO types. */
#define SHMEMCTL_BITWISE_AMO_TYPES(X)                                                              \
  X(unsigned int, uint)                                                                            \
  X(unsigned long, ulong)                                                                          \
  X(unsigned long long, ulonglong)                                                                 \
  X(int32_t, int32)                                                                                \
  X(int64_t, int64)                                                                                \
  X(uint32_t, uint32)                                                                              \
  X(uint64_t, uint64)

/* Types for waiting and testing: those of atomics, and two more, which the specification
 * deprecates. */
#define SHMEMCTL_WAIT_TYPES(X)                                                                     \
  X(short, short)                                                                                  \
  X(unsigned short, ushort)                                                                        \
  SHMEMCTL_AMO_TYPES(X)
#define SHMEMCTL_OLD_WAIT_TYPES(X) X(short, short) X(int, int) X(long, long) X(long long, longlong)

/* Types of reductions over teams: those of and/or/xor; those of min/max; those of sum/prod.
 * The signed standard types have the bitwise reductions, too, as over active sets. */
#define SHMEMCTL_REDUCE_BITWISE_TYPES(X)                                                           \
  X(short, short)                                                                                  \
  X(int, int)                                                                                      \
  X(long, long)                                                                                    \
  X(long long, longlong)                                                                           \
  X(unsigned char, uchar)                                                                          \
  X(unsigned short, ushort)                                                                        \
  X(unsigned int, uint)                                                                            \
  X(unsigned long, ulong)                                                                          \
  X(unsigned long long, ulonglong)                                                                 \
  SHMEMCTL_FIXED_TYPES(X)                                                                          \
  X(size_t, size)
#define SHMEMCTL_REDUCE_COMPARABLE_TYPES(X) SHMEMCTL_RMA_TYPES(X)
#if defined(SHMEMCTL_COMPLEX)
#define SHMEMCTL_COMPLEX_TYPES(X) X(shmemctl_complexd, complexd) X(shmemctl_complexf, complexf)
#else
#define SHMEMCTL_COMPLEX_TYPES(X)
#endif
#define SHMEMCTL_REDUCE_NUMBER_TYPES(X) SHMEMCTL_RMA_TYPES(X) SHMEMCTL_COMPLEX_TYPES(X)

/* Reductions over active sets. */
#define SHMEMCTL_TO_ALL_BITWISE_TYPES(X)                                                           \
  X(short, short) X(int, int) X(long, long) X(long long, longlong)
#define SHMEMCTL_TO_ALL_COMPARABLE_TYPES(X)                                                        \
  SHMEMCTL_TO_ALL_BITWISE_TYPES(X)                                                                 \
  X(float, float)                                                                                  \
  X(double, double)                                                                                \
  X(long double, longdouble)
#define SHMEMCTL_TO_ALL_NUMBER_TYPES(X)                                                            \
  SHMEMCTL_TO_ALL_COMPARABLE_TYPES(X)                                                              \
  SHMEMCTL_COMPLEX_TYPES(X)

#endif
