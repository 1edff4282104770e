/* SHMEM_THREAD_MULTIPLE: threads of one PE communicate, wait and form teams at once. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 300, WORDS = 64 };
static long counter, contended;
static long rows[THREADS][WORDS];
static uint64_t signals[THREADS];
static long lock;
static long sums[THREADS], parts[THREADS];
static shmem_team_t teams[THREADS];
static int me, n, next, before;
static pthread_mutex_t for_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_threads;

static void with_own_context(int thread) {
  const long options[THREADS] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE};
  shmem_ctx_t ctx;
  CHECK(shmem_ctx_create(options[thread], &ctx) == 0);
  long own[WORDS];
  for (uint64_t round = 1; round <= ROUNDS; ++round) {
    for (int i = 0; i < WORDS; ++i)
      own[i] = (long)round * 100 + thread;
    shmem_ctx_long_put_signal_nbi(ctx, rows[thread], own, WORDS, &signals[thread], round,
                                  SHMEM_SIGNAL_SET, next);
    shmem_ctx_quiet(ctx);
    shmem_signal_wait_until(&signals[thread], SHMEM_CMP_GE, round);
    for (int i = 0; i < WORDS; ++i)
      CHECK(shmem_ctx_long_g(ctx, &rows[thread][i], me) == (long)round * 100 + thread);
    /* The next round's data may come when both neighbours have looked. */
    CHECK(shmem_long_sum_reduce(teams[thread], &sums[thread], &parts[thread], 1) == 0);
    CHECK(sums[thread] == n);
  }
  shmem_ctx_destroy(ctx);
}

static void on_default_context(int thread) {
  for (int i = 0; i < ROUNDS; ++i) {
    shmem_long_atomic_inc(&contended, (me + thread) % n);
    long value = thread;
    shmem_long_put(&rows[thread][i % WORDS], &value, 1, next);
    shmem_quiet();
    pthread_mutex_lock(&for_lock); /* a PE may ask for a lock once at a time */
    shmem_set_lock(&lock);
    shmem_long_p(&counter, shmem_long_g(&counter, 0) + 1, 0);
    shmem_clear_lock(&lock);
    pthread_mutex_unlock(&for_lock);
  }
}

/* Each thread splits its own team: different teams at once. */
static void with_own_team(int thread) {
  for (int i = 0; i < 20; ++i) {
    shmem_team_t part;
    const int size = (n + 1) / 2;
    CHECK(shmem_team_split_strided(teams[thread], 0, n > 1 ? 2 : 1, size, NULL, 0, &part) == 0);
    if (part != SHMEM_TEAM_INVALID) {
      CHECK(shmem_long_max_reduce(part, &sums[thread], &parts[thread], 1) == 0);
      CHECK(sums[thread] == 1 && shmem_team_n_pes(part) == size);
    }
    shmem_team_destroy(part);
    CHECK(shmem_team_sync(teams[thread]) == 0);
  }
}

static void* run(void* argument) {
  const int thread = *(const int*)argument;
  with_own_context(thread);
  on_default_context(thread);
  with_own_team(thread);
  pthread_barrier_wait(&all_threads);
  /* The heap grows while the others communicate. */
  if (thread == 0)
    for (int i = 0; i < 10; ++i) {
      void* block = shmem_malloc((size_t)(i + 1) << 20);
      CHECK(block != NULL);
      shmem_free(block);
    }
  else
    for (int i = 0; i < 2000; ++i)
      shmem_long_atomic_inc(&contended, next);
  return NULL;
}

int main(void) {
  int provided = -1;
  CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
  CHECK(provided == SHMEM_THREAD_MULTIPLE);
  me = shmem_my_pe();
  n = shmem_n_pes();
  next = (me + 1) % n;
  before = (me + n - 1) % n;
  for (int i = 0; i < THREADS; ++i) {
    parts[i] = 1;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &teams[i]) == 0);
  }
  shmem_barrier_all();
  pthread_t threads[THREADS];
  int numbers[THREADS];
  CHECK(pthread_barrier_init(&all_threads, NULL, THREADS) == 0);
  for (int i = 0; i < THREADS; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, run, &numbers[i]) == 0);
  }
  for (int i = 0; i < THREADS; ++i)
    CHECK(pthread_join(threads[i], NULL) == 0);
  shmem_barrier_all();
  CHECK(shmem_long_g(&counter, 0) == (long)n * THREADS * ROUNDS);
  CHECK(contended == (long)THREADS * ROUNDS + (THREADS - 1) * 2000);
  for (int i = 0; i < THREADS; ++i)
    shmem_team_destroy(teams[i]);
  shmem_finalize();
  return 0;
}
