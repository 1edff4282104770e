/* A program that uses every group of the interface: sorts keys that are spread over the PEs.
 *
 * 1. PE 0 deals out seeds (atomics), every PE makes its keys.
 * 2. Samples are collected and the splitters broadcast (collectives).
 * 3. Every PE learns what it gets from whom (alltoall, strided put), makes room (memory
 *    management), and the keys travel (put with signal on a context; waiting for any of the
 * signals).
 * 4. Rows and columns of a grid of PEs check the result (teams, reductions); a lock keeps a log in
 *    order; neighbours compare their ends through pointers or single gets.
 * PE 0 prints one line. */
#include <inttypes.h>
#include <string.h>

#include "check.h"

enum { KEYS = 20000, SAMPLES = 16, LOG = 64 };

static int me, n;
static uint64_t next_seed = 1;         /* on PE 0 */
static uint64_t samples[SAMPLES];      /* of this PE */
static uint64_t totals[3], partial[3]; /* keys, sum, xor */
static long log_lock;
static int log_length;
static int log_entries[LOG];
static uint64_t ends[2]; /* the smallest and the largest key here */

static int compare_keys(const void* left, const void* right) {
  const uint64_t a = *(const uint64_t*)left, b = *(const uint64_t*)right;
  return (a > b) - (a < b);
}

static void* needed(void* memory) {
  CHECK(memory != NULL);
  return memory;
}

/* Keys that no two PEs have in common order: a linear congruential generator by seed. */
static void make_keys(uint64_t* keys) {
  uint64_t state = shmem_uint64_atomic_fetch_add(&next_seed, 2, 0) * 2654435761u;
  for (int i = 0; i < KEYS; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    keys[i] = state >> 16;
  }
}

/* splitters[i] is the first key of PE i + 1. */
static void choose_splitters(const uint64_t* keys, uint64_t* splitters) {
  uint64_t* all = needed(shmem_malloc(sizeof *all * SAMPLES * (size_t)n));
  for (int i = 0; i < SAMPLES; ++i)
    samples[i] = keys[(size_t)i * KEYS / SAMPLES];
  CHECK(shmem_uint64_fcollect(SHMEM_TEAM_WORLD, all, samples, SAMPLES) == 0);
  uint64_t* chosen = needed(shmem_calloc((size_t)n, sizeof *chosen));
  if (me == 0) {
    qsort(all, SAMPLES * (size_t)n, sizeof *all, compare_keys);
    for (int pe = 1; pe < n; ++pe)
      chosen[pe - 1] = all[pe * SAMPLES];
  }
  CHECK(shmem_uint64_broadcast(SHMEM_TEAM_WORLD, splitters, chosen, (size_t)n, 0) == 0);
  shmem_free(chosen);
  shmem_free(all);
}

static int owner_of(uint64_t key, const uint64_t* splitters) {
  int pe = 0;
  while (pe < n - 1 && key >= splitters[pe])
    ++pe;
  return pe;
}

/* Sends each PE its keys; returns what came here and how many. The keys are sorted. */
static uint64_t* exchange(const uint64_t* keys, const uint64_t* splitters, size_t* came) {
  const size_t size = sizeof(long) * (size_t)n;
  long* counts = needed(shmem_calloc((size_t)n, sizeof *counts));
  long* incoming = needed(shmem_malloc(size));
  long* offsets = needed(shmem_align(64, size * 2)); /* by PE: where my keys go there */
  uint64_t* signals = needed(shmem_malloc_with_hints(size, SHMEM_MALLOC_SIGNAL_REMOTE));
  for (int i = 0; i < KEYS; ++i)
    ++counts[owner_of(keys[i], splitters)];
  memset(signals, 0, size);
  CHECK(shmem_long_alltoall(SHMEM_TEAM_WORLD, incoming, counts, 1) == 0);

  /* Tell each PE where its keys start here: every other word of its array. */
  long start = 0, room = 0;
  for (int pe = 0; pe < n; ++pe) {
    shmem_long_iput(offsets + 2 * me, &start, 2, 1, 1, pe);
    start += incoming[pe];
  }
  *came = (size_t)start;
  static long mine, most;
  mine = start;
  CHECK(shmem_long_max_reduce(SHMEM_TEAM_WORLD, &most, &mine, 1) == 0);
  room = most > 0 ? most : 1;
  uint64_t* arrived = needed(shmem_malloc(8));
  arrived = needed(shmem_realloc(arrived, sizeof *arrived * (size_t)room));
  shmem_barrier_all();

  shmem_ctx_t ctx;
  CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0);
  const uint64_t* from = keys;
  for (int pe = 0; pe < n; ++pe) {
    shmem_ctx_uint64_put_signal_nbi(ctx, arrived + offsets[2 * pe], from, (size_t)counts[pe],
                                    &signals[me], 1, SHMEM_SIGNAL_SET, pe);
    from += counts[pe];
  }
  shmem_ctx_quiet(ctx);
  shmem_ctx_destroy(ctx);

  int* done = calloc((size_t)n, sizeof *done);
  CHECK(done != NULL);
  for (int left = n; left > 0; --left)
    done[shmem_uint64_wait_until_any(signals, (size_t)n, done, SHMEM_CMP_EQ, 1)] = 1;
  CHECK(shmem_uint64_wait_until_any(signals, (size_t)n, done, SHMEM_CMP_EQ, 1) == SIZE_MAX);
  CHECK(shmem_uint64_test_all(signals, (size_t)n, NULL, SHMEM_CMP_EQ, 1) == 1);
  free(done);
  shmem_barrier_all();
  shmem_free(signals);
  shmem_free(offsets);
  shmem_free(incoming);
  shmem_free(counts);
  return arrived;
}

static void summarise(const uint64_t* keys, size_t count) {
  partial[0] = count;
  partial[1] = partial[2] = 0;
  for (size_t i = 0; i < count; ++i) {
    partial[1] += keys[i];
    partial[2] ^= keys[i] * 0x9e3779b97f4a7c15u;
  }
}

/* Sums over rows, then over columns, of a grid of PEs: the same as over all. */
static void total_by_grid(void) {
  static uint64_t row_sums[2];
  shmem_team_t row, column;
  int width = 1;
  while (width * width < n)
    ++width;
  CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &row, NULL, 0, &column) == 0);
  CHECK(shmem_uint64_sum_reduce(row, row_sums, partial, 2) == 0);
  /* Only the first of each row counts its row, or rows would count once for each column. */
  if (shmem_team_my_pe(row) != 0)
    row_sums[0] = row_sums[1] = 0;
  CHECK(shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, totals, row_sums, 2) == 0);
  CHECK(shmem_uint64_xor_reduce(SHMEM_TEAM_WORLD, totals + 2, partial + 2, 1) == 0);
  CHECK(shmem_team_sync(column) == 0);
  const int upper = shmem_team_translate_pe(column, 0, SHMEM_TEAM_WORLD);
  CHECK(upper == me % width);
  shmem_team_destroy(column);
  shmem_team_destroy(row);
}

/* Everybody's last key is not above the first key of the next PE that has any. */
static void check_order(const uint64_t* keys, size_t count) {
  for (size_t i = 1; i < count; ++i)
    CHECK(keys[i - 1] <= keys[i]);
  ends[0] = count > 0 ? keys[0] : UINT64_MAX;
  ends[1] = count > 0 ? keys[count - 1] : 0;
  shmem_barrier_all();
  for (int pe = me + 1; pe < n && count > 0; ++pe) {
    const uint64_t* direct = shmem_ptr(&ends[0], pe);
    CHECK(ends[1] <= (direct ? *direct : shmem_uint64_g(&ends[0], pe)));
  }
  shmem_sync_all();
}

/* Each PE notes itself once in PE 0's log. */
static void write_log(void) {
  shmem_set_lock(&log_lock);
  const int at = shmem_int_g(&log_length, 0);
  if (at < LOG)
    shmem_int_p(&log_entries[at], me, 0);
  shmem_fence();
  shmem_int_p(&log_length, at + 1, 0);
  shmem_clear_lock(&log_lock);
  shmem_barrier_all();
  if (me == 0) {
    CHECK(log_length == n);
    unsigned char seen[LOG] = {0};
    for (int i = 0; i < n && i < LOG; ++i)
      CHECK(n > LOG || !seen[log_entries[i]]++);
  }
}

int main(void) {
  int provided;
  CHECK(shmem_init_thread(SHMEM_THREAD_SINGLE, &provided) == 0);
  me = shmem_my_pe();
  n = shmem_n_pes();
  for (int pe = 0; pe < n; ++pe)
    CHECK(shmem_pe_accessible(pe) && shmem_addr_accessible(&log_lock, pe));
  uint64_t before[3];
  uint64_t* keys = malloc(sizeof *keys * KEYS);
  CHECK(keys != NULL);
  make_keys(keys);
  qsort(keys, KEYS, sizeof *keys, compare_keys);
  summarise(keys, KEYS);
  total_by_grid();
  memcpy(before, totals, sizeof before);

  uint64_t* splitters = needed(shmem_calloc((size_t)n, sizeof *splitters));
  choose_splitters(keys, splitters);
  size_t came = 0;
  uint64_t* arrived = exchange(keys, splitters, &came);
  qsort(arrived, came, sizeof *arrived, compare_keys);
  check_order(arrived, came);
  summarise(arrived, came);
  total_by_grid();
  CHECK(memcmp(before, totals, sizeof before) == 0 && totals[0] == (uint64_t)KEYS * (uint64_t)n);
  write_log();
  if (me == 0)
    printf("sorted %" PRIu64 " keys on %d PEs\n", totals[0], n);
  shmem_free(arrived);
  shmem_free(splitters);
  free(keys);
  shmem_finalize();
  return 0;
}
