/* Put with signal: the signal says that the data is there. */
#include <string.h>

#include "check.h"

enum { WORDS = 5000, ROUNDS = 50 };
static uint64_t ring_signal, adds, typed;
static long ring[WORDS];
static double values[4];
static char sized[16 * 8];

/* A token goes round; each PE adds 1 to every word of it. */
static void test_ring(int me, int n) {
  static long own[WORDS];
  const int next = (me + 1) % n;
  for (uint64_t round = 1; round <= ROUNDS; ++round) {
    if (me != 0)
      CHECK(shmem_signal_wait_until(&ring_signal, SHMEM_CMP_GE, round) >= round);
    for (int i = 0; i < WORDS; ++i)
      own[i] = (me == 0 ? (long)round * i : ring[i]) + 1;
    if (round % 2)
      shmem_long_put_signal(ring, own, WORDS, &ring_signal, round, SHMEM_SIGNAL_SET, next);
    else
      shmem_long_put_signal_nbi(ring, own, WORDS, &ring_signal, 1, SHMEM_SIGNAL_ADD, next);
    if (me == 0) {
      shmem_signal_wait_until(&ring_signal, SHMEM_CMP_GE, round);
      for (int i = 0; i < WORDS; ++i)
        CHECK(ring[i] == (long)round * i + n);
    }
    shmem_quiet();
  }
  shmem_barrier_all();
  CHECK(shmem_signal_fetch(&ring_signal) == ROUNDS);
}

int main(void) {
  shmem_init();
  const int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n, before = (me + n - 1) % n;
  test_ring(me, n);

  /* Everybody signals everybody; without payload too. */
  for (int pe = 0; pe < n; ++pe) {
    shmem_putmem_signal(NULL, NULL, 0, &adds, 1, SHMEM_SIGNAL_ADD, pe);
    shmem_putmem_signal_nbi(NULL, NULL, 0, &adds, (uint64_t)1 << 40, SHMEM_SIGNAL_ADD, pe);
  }
  const uint64_t all = (uint64_t)n * (((uint64_t)1 << 40) + 1);
  CHECK(shmem_signal_wait_until(&adds, SHMEM_CMP_EQ, all) == all);

  shmem_ctx_t ctx;
  CHECK(shmem_ctx_create(0, &ctx) == 0);
  const double mine[4] = {me, me + 0.5, -me, 1.0 / (me + 1)};
  shmem_ctx_double_put_signal(ctx, values, mine, 4, &typed, UINT64_MAX, SHMEM_SIGNAL_SET, next);
  CHECK(shmem_signal_wait_until(&typed, SHMEM_CMP_NE, 0) == UINT64_MAX);
  CHECK(values[0] == before && values[2] == -before && values[3] == 1.0 / (before + 1));
  shmem_ctx_quiet(ctx);
  shmem_barrier_all();

  char own[sizeof sized];
  for (size_t i = 0; i < sizeof own; ++i)
    own[i] = (char)((int)i + me);
  typed = 0;
  shmem_barrier_all();
  shmem_put8_signal(sized, own, 3, &typed, 1, SHMEM_SIGNAL_ADD, next);
  shmem_ctx_put8_signal(ctx, sized + 3, own + 3, 5, &typed, 1, SHMEM_SIGNAL_ADD, next);
  shmem_put16_signal_nbi(sized + 8, own + 8, 4, &typed, 1, SHMEM_SIGNAL_ADD, next);
  shmem_ctx_put32_signal(ctx, sized + 16, own + 16, 4, &typed, 1, SHMEM_SIGNAL_ADD, next);
  shmem_put64_signal(sized + 32, own + 32, 4, &typed, 1, SHMEM_SIGNAL_ADD, next);
  shmem_ctx_put128_signal_nbi(ctx, sized + 64, own + 64, 2, &typed, 1, SHMEM_SIGNAL_ADD, next);
  shmem_ctx_putmem_signal(ctx, sized + 96, own + 96, 32, &typed, 1, SHMEM_SIGNAL_ADD, next);
  shmem_signal_wait_until(&typed, SHMEM_CMP_EQ, 7);
  for (size_t i = 0; i < sizeof sized; ++i)
    CHECK(sized[i] == (char)((int)i + before));
  shmem_ctx_destroy(ctx);
  shmem_finalize();
  return 0;
}
