/* Locks: mutual exclusion, many at once, trying. */
#include "check.h"

enum { LOCKS = 5, ROUNDS = 200 };
static long locks[LOCKS];
static long counters[LOCKS]; /* on PE 0; not atomic: the lock is what protects them */

int main(void) {
  shmem_init();
  const int me = shmem_my_pe(), n = shmem_n_pes();
  long* heap_lock = shmem_calloc(1, sizeof *heap_lock);
  CHECK(heap_lock != NULL);
  for (int round = 0; round < ROUNDS; ++round) {
    const int which = (round * 3 + me) % LOCKS;
    if ((round + me) % 3 == 0)
      while (shmem_test_lock(&locks[which]) != 0)
        ;
    else
      shmem_set_lock(&locks[which]);
    /* Whoever comes in between would lose one. */
    const long seen = shmem_long_g(&counters[which], 0);
    shmem_long_p(&counters[which], seen + 1, 0);
    shmem_clear_lock(&locks[which]);
  }
  shmem_barrier_all();
  if (me == 0) {
    long sum = 0;
    for (int i = 0; i < LOCKS; ++i)
      sum += counters[i];
    CHECK(sum == (long)ROUNDS * n);
  }
  /* A lock that nobody has is as it was at first. */
  for (int i = 0; i < LOCKS; ++i)
    CHECK(locks[i] == 0);

  /* While PE 0 holds it, nobody else gets it. */
  shmem_barrier_all();
  if (me == 0)
    CHECK(shmem_test_lock(heap_lock) == 0);
  shmem_barrier_all();
  if (me != 0)
    CHECK(shmem_test_lock(heap_lock) == 1);
  shmem_barrier_all();
  if (me == 0)
    shmem_clear_lock(heap_lock);
  shmem_set_lock(heap_lock);
  shmem_clear_lock(heap_lock);
  shmem_barrier_all();
  CHECK(*heap_lock == 0);
  shmem_free(heap_lock);
  shmem_finalize();
  return 0;
}
