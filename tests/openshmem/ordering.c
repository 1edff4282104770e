/* Fence, quiet, barriers and syncs. */
#include "check.h"

enum { ROUNDS = 300, WORDS = 700 };
static long data[WORDS], flag, back, counts[3];

int main(void) {
  shmem_init();
  const int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n, before = (me + n - 1) % n;
  long own[WORDS];

  /* What a fence parts comes in that order. */
  for (long round = 1; round <= ROUNDS; ++round) {
    for (int i = 0; i < WORDS; ++i)
      own[i] = round * 1000 + i;
    shmem_long_put_nbi(data, own, WORDS, next);
    shmem_fence();
    shmem_long_p(&flag, round, next);
    shmem_long_wait_until(&flag, SHMEM_CMP_GE, round);
    for (int i = 0; i < WORDS; ++i)
      CHECK(data[i] == round * 1000 + i);
    shmem_long_p(&back, round, before);
    shmem_long_wait_until(&back, SHMEM_CMP_GE, round);
    shmem_quiet();
  }

  /* After a quiet everything is there, for a third PE too. */
  shmem_barrier_all();
  if (me == 0) {
    for (int pe = 0; pe < n; ++pe)
      shmem_long_p(&data[0], 77, pe);
    shmem_quiet();
    shmem_long_p(&flag, -1, n - 1);
  }
  if (me == n - 1) {
    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, -1);
    for (int pe = 0; pe < n; ++pe)
      CHECK(shmem_long_g(&data[0], pe) == 77);
  }

  /* A barrier completes, and no PE is more than one ahead. */
  shmem_barrier_all();
  for (int round = 1; round <= ROUNDS; ++round) {
    shmem_long_atomic_inc(&counts[round % 3], next);
    if (round % 2)
      shmem_barrier_all();
    else {
      shmem_quiet();
      if (round % 4)
        shmem_sync_all();
      else
        CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) == 0);
    }
    CHECK(shmem_long_atomic_fetch(&counts[round % 3], me) == (round + 2) / 3);
  }
  CHECK(shmem_team_sync(SHMEM_TEAM_INVALID) != 0);
  CHECK(shmem_team_sync(SHMEM_TEAM_SHARED) == 0);
  shmem_finalize();
  return 0;
}
