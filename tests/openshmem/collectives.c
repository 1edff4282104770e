/* Collectives over teams, against what each PE can compute by itself. */
#include <complex.h>
#include <limits.h>
#include <string.h>

#include "check.h"

enum { MOST = 3000, PES = 32 };
static int me, n;

/* A team as this program knows it. */
struct group {
  shmem_team_t team;
  int start, stride, size, mine;
};

static unsigned char source[PES * MOST], dest[PES * MOST];

static unsigned char byte_of(int pe, size_t i) {
  return (unsigned char)((size_t)pe * 131 + i * 7 + i / 251);
}

static void fill(size_t size) {
  for (size_t i = 0; i < size; ++i)
    source[i] = byte_of(me, i);
  memset(dest, 0xee, sizeof dest);
}

static int pe_of(const struct group* group, int member) {
  return group->start + member * group->stride;
}

static void test_moves(const struct group* g, size_t size) {
  const size_t all = size * (size_t)g->size;
  for (int root = 0; root < g->size; ++root) {
    fill(size);
    CHECK(shmem_broadcastmem(g->team, dest, source, size, root) == 0);
    for (size_t i = 0; i < size; ++i)
      CHECK(dest[i] == byte_of(pe_of(g, root), i)); /* on the root too */
    CHECK(dest[size] == 0xee);
  }
  fill(size);
  CHECK(shmem_fcollectmem(g->team, dest, source, size) == 0);
  for (size_t i = 0; i < all; ++i)
    CHECK(dest[i] == byte_of(pe_of(g, (int)(i / size)), i % size));
  CHECK(dest[all] == 0xee);

  fill(all);
  CHECK(shmem_alltoallmem(g->team, dest, source, size) == 0);
  for (size_t i = 0; i < all; ++i)
    CHECK(dest[i] == byte_of(pe_of(g, (int)(i / size)), (size_t)g->mine * size + i % size));
  CHECK(dest[all] == 0xee);

  /* Each brings another size, some nothing. */
  const size_t own = size * (size_t)(g->mine % 3);
  fill(own);
  CHECK(shmem_collectmem(g->team, dest, source, own) == 0);
  size_t at = 0;
  for (int member = 0; member < g->size; ++member)
    for (size_t i = 0; i < size * (size_t)(member % 3); ++i, ++at)
      CHECK(dest[at] == byte_of(pe_of(g, member), i));
  CHECK(dest[at] == 0xee);
}

static void test_strides(const struct group* g, size_t nelems) {
  enum { TO = 3, FROM = 2 };
  short* from = (short*)source;
  short* to = (short*)dest;
  const size_t all = nelems * (size_t)g->size;
  for (size_t i = 0; i < all * FROM; ++i)
    from[i] = (short)(me * 1000 + (int)i);
  for (size_t i = 0; i < all * TO; ++i)
    to[i] = -1;
  CHECK(shmem_short_alltoalls(g->team, to, from, TO, FROM, nelems) == 0);
  for (size_t i = 0; i < all; ++i) {
    const size_t block = (size_t)g->mine * nelems + i % nelems;
    CHECK(to[i * TO] == (short)(pe_of(g, (int)(i / nelems)) * 1000 + (int)(block * FROM)));
    CHECK(to[i * TO + 1] == -1 && to[i * TO + 2] == -1);
  }
  CHECK(shmem_alltoallsmem(g->team, dest, source, 1, 1, nelems) == 0);
}

/* Reductions: values small enough to be exact in every type. */
static int value_of(int pe, size_t i) {
  return (int)((size_t)(pe + 1) * (i + 3) % 7) + 1;
}

#define ARITHMETIC(X)                                                                              \
  X(char, char)                                                                                    \
  X(signed char, schar)                                                                            \
  X(short, short)                                                                                  \
  X(int, int)                                                                                      \
  X(long, long)                                                                                    \
  X(long long, longlong)                                                                           \
  X(ptrdiff_t, ptrdiff)                                                                            \
  X(unsigned char, uchar)                                                                          \
  X(unsigned short, ushort)                                                                        \
  X(unsigned int, uint)                                                                            \
  X(unsigned long, ulong)                                                                          \
  X(unsigned long long, ulonglong)                                                                 \
  X(int8_t, int8)                                                                                  \
  X(int16_t, int16)                                                                                \
  X(int32_t, int32)                                                                                \
  X(int64_t, int64)                                                                                \
  X(uint8_t, uint8)                                                                                \
  X(uint16_t, uint16)                                                                              \
  X(uint32_t, uint32)                                                                              \
  X(uint64_t, uint64)                                                                              \
  X(size_t, size)                                                                                  \
  X(float, float)                                                                                  \
  X(double, double)                                                                                \
  X(long double, longdouble)
#define BITS(X)                                                                                    \
  X(unsigned char, uchar)                                                                          \
  X(unsigned short, ushort)                                                                        \
  X(unsigned int, uint)                                                                            \
  X(unsigned long, ulong)                                                                          \
  X(unsigned long long, ulonglong)                                                                 \
  X(int8_t, int8)                                                                                  \
  X(int16_t, int16)                                                                                \
  X(int32_t, int32)                                                                                \
  X(int64_t, int64)                                                                                \
  X(uint8_t, uint8)                                                                                \
  X(uint16_t, uint16)                                                                              \
  X(uint32_t, uint32)                                                                              \
  X(uint64_t, uint64)                                                                              \
  X(size_t, size)

/* `step` folds `value` into `expected`. In place every other time. */
#define REDUCED(T, N, OP, step)                                                                    \
  do {                                                                                             \
    T* to = count % 2 ? N##_from : N##_to;                                                         \
    for (size_t i = 0; i < count; ++i)                                                             \
      N##_from[i] = (T)value_of(me, i), N##_to[i] = 0;                                             \
    CHECK(shmem_##N##_##OP##_reduce(g->team, to, N##_from, count) == 0);                           \
    for (size_t i = 0; i < count; ++i) {                                                           \
      T expected = (T)value_of(pe_of(g, 0), i);                                                    \
      for (int member = 1; member < g->size; ++member) {                                           \
        const T value = (T)value_of(pe_of(g, member), i);                                          \
        step;                                                                                      \
      }                                                                                            \
      CHECK(to[i] == expected);                                                                    \
    }                                                                                              \
  } while (0)

#define X(T, N)                                                                                    \
  static T N##_from[MOST], N##_to[MOST];                                                           \
  static void reduce_##N(const struct group* g, size_t count) {                                    \
    REDUCED(T, N, sum, expected = (T)(expected + value));                                          \
    if (g->size <= 3)                                                                              \
      REDUCED(T, N, prod, expected = (T)(expected * value));                                       \
    REDUCED(T, N, max, expected = value > expected ? value : expected);                            \
    REDUCED(T, N, min, expected = value < expected ? value : expected);                            \
  }
ARITHMETIC(X)
#undef X
#define X(T, N)                                                                                    \
  static void reduce_bits_##N(const struct group* g, size_t count) {                               \
    REDUCED(T, N, and, expected = (T)(expected & value));                                          \
    REDUCED(T, N, or, expected = (T)(expected | value));                                           \
    REDUCED(T, N, xor, expected = (T)(expected ^ value));                                          \
  }
BITS(X)
#undef X
#define X(T, N)                                                                                    \
  static T N##_from[MOST], N##_to[MOST];                                                           \
  static void reduce_##N(const struct group* g, size_t count) {                                    \
    REDUCED(T, N, sum, expected += value);                                                         \
    for (size_t i = 0; i < count; ++i)                                                             \
      N##_from[i] = I;                                                                             \
    CHECK(shmem_##N##_prod_reduce(g->team, N##_to, N##_from, count) == 0);                         \
    const T turns[4] = {1, I, -1, -I};                                                             \
    for (size_t i = 0; i < count; ++i)                                                             \
      CHECK(N##_to[i] == turns[g->size % 4]);                                                      \
  }
X(double _Complex, complexd)
X(float _Complex, complexf)
#undef X

static void test_reductions(const struct group* g, size_t count) {
#define X(T, N) reduce_##N(g, count);
  ARITHMETIC(X)
  X(double _Complex, complexd)
  X(float _Complex, complexf)
#undef X
#define X(T, N) reduce_bits_##N(g, count);
  BITS(X)
#undef X
}

/* Signed extremes: what compares as unsigned would get wrong. */
static void test_signs(void) {
  static int from[2], to[2];
  from[0] = me == 0 ? INT_MIN : -5;
  from[1] = me == n - 1 ? INT_MAX : -5;
  CHECK(shmem_int_min_reduce(SHMEM_TEAM_WORLD, to, from, 2) == 0 && to[0] == INT_MIN);
  CHECK(shmem_int_max_reduce(SHMEM_TEAM_WORLD, to, from, 2) == 0 && to[1] == INT_MAX);
}

static void test_group(const struct group* g) {
  const size_t sizes[] = {0, 1, 3, 8, 64, 1001};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
    test_moves(g, sizes[i]);
  test_strides(g, 0);
  test_strides(g, 1);
  test_strides(g, 5);
  test_reductions(g, 0);
  test_reductions(g, 1);
  test_reductions(g, 7);
  test_reductions(g, MOST);
}

int main(void) {
  shmem_init();
  me = shmem_my_pe();
  n = shmem_n_pes();
  if (n > PES - 1) {
    shmem_finalize();
    return 0;
  }
  struct group world = {SHMEM_TEAM_WORLD, 0, 1, n, me};
  test_group(&world);
  test_signs();
  for (int stride = 2; stride <= 3; ++stride) {
    struct group part = {SHMEM_TEAM_INVALID, me % stride, stride, 0, me / stride};
    for (int first = 0; first < stride && first < n; ++first) {
      shmem_team_t team;
      const int size = (n - first + stride - 1) / stride;
      CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, first, stride, size, NULL, 0, &team) == 0);
      if (team != SHMEM_TEAM_INVALID)
        part.team = team, part.size = size;
    }
    test_group(&part); /* the parts at once, each by itself */
    shmem_team_destroy(part.team);
    shmem_barrier_all();
  }
  CHECK(shmem_broadcastmem(SHMEM_TEAM_INVALID, dest, source, 1, 0) != 0);
  CHECK(shmem_int_sum_reduce(SHMEM_TEAM_INVALID, (int*)dest, (int*)source, 1) != 0);
  shmem_finalize();
  return 0;
}
