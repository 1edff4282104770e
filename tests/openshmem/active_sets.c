/* The deprecated collectives over active sets. PEs outside of a set take no part. */
#include <complex.h>
#include <limits.h>
#include <string.h>

#include "check.h"

enum { MOST = 2500, PES = 32 };
static long sync_area[2][SHMEM_SYNC_SIZE];
static long barrier_area[SHMEM_BARRIER_SYNC_SIZE];
static uint64_t source[PES * 64], dest[PES * 64];
static int me, n, uses;

struct set {
  int start, log_stride, size, mine;
};

static int pe_of(const struct set* s, int member) {
  return member == 0 ? s->start : s->start + (member << s->log_stride);
}

/* Two areas by turns: the one that the call before last used is free. */
static long* area(void) {
  return sync_area[uses++ % 2];
}

static int restored(const long* words) {
  for (int i = 0; i < SHMEM_SYNC_SIZE; ++i)
    if (words[i] != SHMEM_SYNC_VALUE)
      return 0;
  return 1;
}

#define SET s->start, s->log_stride, s->size

static uint64_t mark(int pe, size_t i) {
  return (uint64_t)pe * 100003 + i * 17 + 5;
}

static void fill(size_t count) {
  for (size_t i = 0; i < count; ++i)
    source[i] = mark(me, i);
  memset(dest, 0xee, sizeof dest);
}

static void test_moves(const struct set* s, size_t count) {
  const uint64_t untouched = 0xeeeeeeeeeeeeeeee;
  const size_t all = count * (size_t)s->size;
  for (int root = 0; root < s->size; ++root) {
    fill(count);
    shmem_broadcast64(dest, source, count, root, SET, area());
    for (size_t i = 0; i < count; ++i)
      CHECK(dest[i] == (s->mine == root ? untouched : mark(pe_of(s, root), i)));
    CHECK(dest[count] == untouched);
  }
  fill(count);
  shmem_fcollect64(dest, source, count, SET, area());
  for (size_t i = 0; i < all; ++i)
    CHECK(dest[i] == mark(pe_of(s, (int)(i / count)), i % count));
  CHECK(dest[all] == untouched);
  fill(all);
  shmem_alltoall64(dest, source, count, SET, area());
  for (size_t i = 0; i < all; ++i)
    CHECK(dest[i] == mark(pe_of(s, (int)(i / count)), (size_t)s->mine * count + i % count));
  CHECK(dest[all] == untouched);
  const size_t own = count * (size_t)(s->mine % 3);
  fill(own);
  shmem_collect64(dest, source, own, SET, area());
  size_t at = 0;
  for (int member = 0; member < s->size; ++member)
    for (size_t i = 0; i < count * (size_t)(member % 3); ++i, ++at)
      CHECK(dest[at] == mark(pe_of(s, member), i));
  CHECK(dest[at] == untouched);
}

static void test_32_bits(const struct set* s) {
  uint32_t* from = (uint32_t*)source;
  uint32_t* to = (uint32_t*)dest;
  for (uint32_t i = 0; i < PES * 4; ++i)
    from[i] = (uint32_t)me * 1000 + i;
  memset(dest, 0xee, sizeof dest);
  shmem_broadcast32(to, from, 3, s->size - 1, SET, area());
  if (s->mine != s->size - 1)
    CHECK(to[2] == (uint32_t)pe_of(s, s->size - 1) * 1000 + 2 && to[3] == 0xeeeeeeee);
  shmem_fcollect32(to, from, 1, SET, area());
  for (int member = 0; member < s->size; ++member)
    CHECK(to[member] == (uint32_t)pe_of(s, member) * 1000);
  shmem_collect32(to, from, (size_t)(s->mine == 0 ? 3 : 1), SET, area());
  CHECK(to[2] == (uint32_t)pe_of(s, 0) * 1000 + 2);
  CHECK(s->size == 1 || to[3] == (uint32_t)pe_of(s, 1) * 1000);
  shmem_alltoall32(to, from, 1, SET, area());
  shmem_alltoalls32(to, from, 2, 3, 1, SET, area());
  for (int member = 0; member < s->size; ++member)
    CHECK(to[2 * member] == (uint32_t)(pe_of(s, member) * 1000 + 3 * s->mine));
  memset(dest, 0xee, sizeof dest);
  for (size_t i = 0; i < PES * 4; ++i)
    source[i] = mark(me, i);
  shmem_alltoalls64(dest, source, 2, 1, 2, SET, area());
  for (int member = 0; member < s->size; ++member) {
    CHECK(dest[4 * member] == mark(pe_of(s, member), (size_t)s->mine * 2));
    CHECK(dest[4 * member + 2] == mark(pe_of(s, member), (size_t)s->mine * 2 + 1));
    CHECK(dest[4 * member + 1] == 0xeeeeeeeeeeeeeeee);
  }
}

static int value_of(int pe, size_t i) {
  return (int)((size_t)(pe + 1) * (i + 3) % 7) + 1;
}

#define REDUCED(T, N, OP, step)                                                                    \
  do {                                                                                             \
    T* to = count % 2 ? N##_from : N##_to;                                                         \
    for (size_t i = 0; i < count; ++i)                                                             \
      N##_from[i] = (T)value_of(me, i), N##_to[i] = 0;                                             \
    shmem_##N##_##OP##_to_all(to, N##_from, (int)count, SET, N##_work, area());                    \
    for (size_t i = 0; i < count; ++i) {                                                           \
      T expected = (T)value_of(pe_of(s, 0), i);                                                    \
      for (int member = 1; member < s->size; ++member) {                                           \
        const T value = (T)value_of(pe_of(s, member), i);                                          \
        step;                                                                                      \
      }                                                                                            \
      CHECK(to[i] == expected);                                                                    \
    }                                                                                              \
  } while (0)

#define INTEGERS(X) X(short, short) X(int, int) X(long, long) X(long long, longlong)
#define NUMBERS(X) INTEGERS(X) X(float, float) X(double, double) X(long double, longdouble)
enum {
  WORK = MOST / 2 + 1 > SHMEM_REDUCE_MIN_WRKDATA_SIZE ? MOST / 2 + 1 : SHMEM_REDUCE_MIN_WRKDATA_SIZE
};

#define X(T, N)                                                                                    \
  static T N##_from[MOST], N##_to[MOST], N##_work[WORK];                                           \
  static void reduce_##N(const struct set* s, size_t count) {                                      \
    REDUCED(T, N, sum, expected = (T)(expected + value));                                          \
    if (s->size <= 4)                                                                              \
      REDUCED(T, N, prod, expected = (T)(expected * value));                                       \
    REDUCED(T, N, max, expected = value > expected ? value : expected);                            \
    REDUCED(T, N, min, expected = value < expected ? value : expected);                            \
  }
NUMBERS(X)
#undef X
#define X(T, N)                                                                                    \
  static void reduce_bits_##N(const struct set* s, size_t count) {                                 \
    REDUCED(T, N, and, expected = (T)(expected & value));                                          \
    REDUCED(T, N, or, expected = (T)(expected | value));                                           \
    REDUCED(T, N, xor, expected = (T)(expected ^ value));                                          \
  }
INTEGERS(X)
#undef X
#define X(T, N)                                                                                    \
  static T N##_from[MOST], N##_to[MOST], N##_work[WORK];                                           \
  static void reduce_##N(const struct set* s, size_t count) {                                      \
    const T turns[4] = {1, I, -1, -I};                                                             \
    REDUCED(T, N, sum, expected += value);                                                         \
    for (size_t i = 0; i < count; ++i)                                                             \
      N##_from[i] = I;                                                                             \
    shmem_##N##_prod_to_all(N##_to, N##_from, (int)count, SET, N##_work, area());                  \
    for (size_t i = 0; i < count; ++i)                                                             \
      CHECK(N##_to[i] == turns[s->size % 4]);                                                      \
  }
X(double _Complex, complexd)
X(float _Complex, complexf)
#undef X

static void test_reductions(const struct set* s, size_t count) {
#define X(T, N) reduce_##N(s, count);
  NUMBERS(X)
  X(double _Complex, complexd)
  X(float _Complex, complexf)
#undef X
#define X(T, N) reduce_bits_##N(s, count);
  INTEGERS(X)
#undef X
}

/* One array serves barriers and syncs of one set that follow each other. */
static void test_barriers(const struct set* s) {
  static long count;
  const int next = pe_of(s, (s->mine + 1) % s->size);
  count = 0;
  shmem_barrier(SET, barrier_area);
  for (long round = 1; round <= 100; ++round) {
    shmem_long_atomic_inc(&count, next);
    shmem_barrier(SET, barrier_area);
    CHECK(shmem_long_atomic_fetch(&count, me) == round);
    shmem_sync(SET, barrier_area);
  }
  shmem_barrier(SET, barrier_area);
}

static void test_set(const struct set* s) {
  test_barriers(s);
  const size_t counts[] = {0, 1, 5, 33};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i)
    test_moves(s, counts[i]);
  test_32_bits(s);
  test_reductions(s, 0);
  test_reductions(s, 1);
  test_reductions(s, 6);
  test_reductions(s, MOST);
}

/* With one member the stride means nothing, so every one is legal. */
static void test_one_member(void) {
  const int strides[] = {0, 30, 31, 32, INT_MAX, -1, INT_MIN};
  for (size_t i = 0; i < sizeof strides / sizeof *strides; ++i) {
    const struct set s = {me, strides[i], 1, 0};
    test_barriers(&s);
    test_moves(&s, 5);
    test_32_bits(&s);
    test_reductions(&s, 6);
  }
  shmem_barrier_all();
  uses = 0;
  CHECK(restored(sync_area[0]) && restored(sync_area[1]) && restored(barrier_area));
  shmem_barrier_all();
}

int main(void) {
  shmem_init();
  me = shmem_my_pe();
  n = shmem_n_pes();
  if (n > PES - 1) {
    shmem_finalize();
    return 0;
  }
  test_one_member();
  for (int log_stride = 0; (1 << log_stride) <= n; ++log_stride)
    for (int start = 0; start < 3 && start < n; ++start) {
      struct set s = {start, log_stride, (n - start + (1 << log_stride) - 1) >> log_stride, 0};
      const int distance = me - start;
      s.mine = distance >> log_stride;
      if (distance >= 0 && distance % (1 << log_stride) == 0 && s.mine < s.size)
        test_set(&s);
      /* The others wait here, not in the set's collectives. */
      shmem_barrier_all();
      uses = 0;
      CHECK(restored(sync_area[0]) && restored(sync_area[1]) && restored(barrier_area));
      shmem_barrier_all();
    }
  shmem_finalize();
  return 0;
}
