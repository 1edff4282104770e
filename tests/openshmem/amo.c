/* Atomics of every type, each PE against all others at once. */
#include "check.h"

#define AMO(X)                                                                                     \
  X(int, int)                                                                                      \
  X(long, long)                                                                                    \
  X(long long, longlong)                                                                           \
  X(unsigned int, uint)                                                                            \
  X(unsigned long, ulong)                                                                          \
  X(unsigned long long, ulonglong)                                                                 \
  X(int32_t, int32)                                                                                \
  X(int64_t, int64)                                                                                \
  X(uint32_t, uint32)                                                                              \
  X(uint64_t, uint64)                                                                              \
  X(size_t, size)                                                                                  \
  X(ptrdiff_t, ptrdiff)
#define BITWISE(X)                                                                                 \
  X(unsigned int, uint)                                                                            \
  X(unsigned long, ulong)                                                                          \
  X(unsigned long long, ulonglong)                                                                 \
  X(int32_t, int32)                                                                                \
  X(int64_t, int64)                                                                                \
  X(uint32_t, uint32)                                                                              \
  X(uint64_t, uint64)

enum { ROUNDS = 200 };
static int me, n;
static shmem_ctx_t ctx;

/* Everybody counts on PE 0; each value is fetched once. Neighbours of the word stay as they are. */
#define X(T, N)                                                                                    \
  static T N##_words[3], N##_seen[3 * ROUNDS * 64], N##_turn;                                      \
  static void test_##N(void) {                                                                     \
    const T all_ones = (T) ~(T)0;                                                                  \
    N##_words[0] = N##_words[2] = all_ones;                                                        \
    N##_words[1] = 0;                                                                              \
    shmem_barrier_all();                                                                           \
    for (int i = 0; i < ROUNDS; ++i) {                                                             \
      T got = shmem_##N##_atomic_fetch_inc(&N##_words[1], 0);                                      \
      if (n <= 64)                                                                                 \
        shmem_##N##_atomic_inc(&N##_seen[got], 0);                                                 \
      got = shmem_ctx_##N##_atomic_fetch_add(ctx, &N##_words[1], 1, 0);                            \
      if (n <= 64)                                                                                 \
        shmem_ctx_##N##_atomic_add(ctx, &N##_seen[got], 1, 0);                                     \
      shmem_##N##_atomic_fetch_inc_nbi(&got, &N##_words[1], 0);                                    \
      shmem_quiet();                                                                               \
      if (n <= 64)                                                                                 \
        shmem_##N##_atomic_inc(&N##_seen[got], 0);                                                 \
    }                                                                                              \
    shmem_ctx_quiet(ctx);                                                                          \
    shmem_barrier_all();                                                                           \
    CHECK(shmem_##N##_atomic_fetch(&N##_words[1], 0) == (T)(3 * ROUNDS * n));                      \
    CHECK(N##_words[0] == all_ones && N##_words[2] == all_ones);                                   \
    if (me == 0 && n <= 64)                                                                        \
      for (int i = 0; i < 3 * ROUNDS * n; ++i)                                                     \
        CHECK(N##_seen[i] == 1);                                                                   \
    shmem_barrier_all();                                                                           \
    /* A turn that goes round by compare and swap: PE i makes i into i + 1. */                     \
    while (shmem_##N##_atomic_compare_swap(&N##_turn, (T)me, (T)(me + 1), 0) != (T)me)             \
      ;                                                                                            \
    while (shmem_##N##_atomic_fetch(&N##_turn, 0) != (T)n)                                         \
      ;                                                                                            \
    /* Swaps hand every value to exactly one PE: their sum stays. */                               \
    T mine = (T)(me + 1), got = 0;                                                                 \
    shmem_barrier_all();                                                                           \
    if (me == 0)                                                                                   \
      N##_words[1] = 0, N##_turn = 0;                                                              \
    shmem_barrier_all();                                                                           \
    for (int i = 0; i < ROUNDS; ++i)                                                               \
      mine = shmem_##N##_atomic_swap(&N##_words[1], mine, 0);                                      \
    shmem_##N##_atomic_swap_nbi(&got, &N##_words[1], mine, 0);                                     \
    shmem_quiet();                                                                                 \
    shmem_##N##_atomic_add(&N##_turn, got, 0);                                                     \
    shmem_barrier_all();                                                                           \
    CHECK((T)(shmem_##N##_g(&N##_turn, 0) + shmem_##N##_g(&N##_words[1], 0)) ==                    \
          (T)(n * (n + 1) / 2));                                                                   \
    shmem_barrier_all();                                                                           \
    /* Below zero and back: wraps within the type. */                                              \
    N##_words[1] = 0;                                                                              \
    shmem_barrier_all();                                                                           \
    CHECK(shmem_##N##_atomic_fetch_add(&N##_words[1], all_ones, me) == 0);                         \
    CHECK(shmem_##N##_atomic_fetch_inc(&N##_words[1], me) == all_ones);                            \
    CHECK(shmem_##N##_atomic_fetch(&N##_words[1], me) == 0);                                       \
    CHECK(N##_words[0] == all_ones && N##_words[2] == all_ones);                                   \
    shmem_barrier_all();                                                                           \
  }
AMO(X)
#undef X

#define X(T, N)                                                                                    \
  static T N##_bits;                                                                               \
  static void test_bits_##N(void) {                                                                \
    const T bit = (T)((T)1 << (me % 31));                                                          \
    const int alone = n <= 31;                                                                     \
    T old = 0;                                                                                     \
    N##_bits = 0;                                                                                  \
    shmem_barrier_all();                                                                           \
    if (alone) {                                                                                   \
      CHECK((shmem_##N##_atomic_fetch_or(&N##_bits, bit, 0) & bit) == 0);                          \
      CHECK((shmem_##N##_atomic_fetch_xor(&N##_bits, bit, 0) & bit) == bit);                       \
      shmem_ctx_##N##_atomic_xor(ctx, &N##_bits, bit, 0);                                          \
      shmem_ctx_quiet(ctx);                                                                        \
      shmem_##N##_atomic_fetch_and_nbi(&old, &N##_bits, (T)~bit, 0);                               \
      shmem_quiet();                                                                               \
      CHECK((old & bit) == bit);                                                                   \
      shmem_##N##_atomic_or(&N##_bits, bit, 0);                                                    \
      shmem_barrier_all();                                                                         \
      CHECK(shmem_##N##_g(&N##_bits, 0) == (T)(((uint64_t)1 << n) - 1));                           \
      shmem_barrier_all();                                                                         \
      shmem_##N##_atomic_and(&N##_bits, (T)~bit, 0);                                               \
      shmem_barrier_all();                                                                         \
      CHECK(N##_bits == 0);                                                                        \
    }                                                                                              \
  }
BITWISE(X)
#undef X

static float shared_float;
static double shared_double;

static void test_real(void) {
  float f = (float)me + 0.5f;
  double d = me + 0.25;
  double sum = 0;
  shmem_barrier_all();
  f = shmem_float_atomic_swap(&shared_float, f, 0);
  d = shmem_ctx_double_atomic_swap(ctx, &shared_double, d, 0);
  static double sums[2];
  static double results[2];
  shmem_barrier_all();
  sums[0] = f, sums[1] = d;
  CHECK(shmem_double_sum_reduce(SHMEM_TEAM_WORLD, results, sums, 2) == 0);
  for (int i = 0; i < n; ++i)
    sum += i;
  CHECK(results[0] + shmem_float_atomic_fetch(&shared_float, 0) == sum + 0.5 * n);
  CHECK(results[1] + shmem_double_atomic_fetch(&shared_double, 0) == sum + 0.25 * n);
  shmem_barrier_all();
  shmem_float_atomic_set(&shared_float, -0.0f, me);
  shmem_double_atomic_set(&shared_double, 1e-320, me);
  shmem_quiet();
  CHECK(shmem_double_atomic_fetch(&shared_double, me) == 1e-320);
  float back = 1;
  shmem_float_atomic_fetch_nbi(&back, &shared_float, me);
  shmem_quiet();
  CHECK(back == 0 && 1 / back < 0);
}

int main(void) {
  shmem_init();
  me = shmem_my_pe();
  n = shmem_n_pes();
  CHECK(shmem_ctx_create(0, &ctx) == 0);
#define X(T, N) test_##N();
  AMO(X)
#undef X
#define X(T, N) test_bits_##N();
  BITWISE(X)
#undef X
  test_real();
  shmem_ctx_destroy(ctx);
  shmem_finalize();
  return 0;
}
