/* Teams: splits, numbering, nesting, reuse. */
#include <limits.h>

#include "check.h"

static int me, n;

static void check_members(shmem_team_t team, int start, int stride, int size) {
  CHECK(shmem_team_n_pes(team) == size);
  const int mine = shmem_team_my_pe(team);
  CHECK(mine >= 0 && mine < size && start + mine * stride == me);
  for (int i = 0; i < size; ++i) {
    CHECK(shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD) == start + i * stride);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, start + i * stride, team) == i);
  }
  CHECK(shmem_team_translate_pe(team, -1, SHMEM_TEAM_WORLD) == -1);
  CHECK(shmem_team_translate_pe(team, size, SHMEM_TEAM_WORLD) == -1);
  /* It works: members add up their numbers. */
  static int sum, number;
  number = mine;
  CHECK(shmem_int_sum_reduce(team, &sum, &number, 1) == 0);
  CHECK(sum == size * (size - 1) / 2);
  CHECK(shmem_team_sync(team) == 0);
}

static void test_strided(void) {
  for (int stride = -3; stride <= 3; ++stride)
    for (int start = 0; start < n; ++start)
      for (int size = 1; size <= n; ++size) {
        const int last = start + stride * (size - 1);
        const int legal = last >= 0 && last < n && (stride != 0 || size == 1);
        shmem_team_t team = SHMEM_TEAM_WORLD;
        const int status =
            shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &team);
        if (!legal) {
          CHECK(status != 0 && team == SHMEM_TEAM_INVALID);
          continue;
        }
        CHECK(status == 0);
        const int step = stride == 0 ? 1 : stride;
        const int member =
            (me - start) % step == 0 && (me - start) / step >= 0 && (me - start) / step < size;
        CHECK((team != SHMEM_TEAM_INVALID) == member);
        if (member)
          check_members(team, start, step, size);
        else
          CHECK(shmem_team_my_pe(team) == -1 && shmem_team_n_pes(team) == -1);
        shmem_team_destroy(team);
      }
  /* Of one member the stride means nothing. */
  const int strides[] = {1000, INT_MAX, -1000, INT_MIN};
  for (size_t i = 0; i < sizeof strides / sizeof *strides; ++i) {
    shmem_team_t alone = SHMEM_TEAM_INVALID;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, strides[i], 1, NULL, 0, &alone) == 0);
    if (me == n - 1)
      check_members(alone, me, 1, 1);
    else
      CHECK(alone == SHMEM_TEAM_INVALID);
    shmem_team_destroy(alone);
  }
  shmem_team_t team;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 0, NULL, 0, &team) != 0);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, -1, 1, 1, NULL, 0, &team) != 0);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n, 1, 1, NULL, 0, &team) != 0);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0);
  CHECK(team == SHMEM_TEAM_INVALID);
}

static void test_2d(void) {
  for (int range = 1; range <= n + 1; ++range) {
    shmem_team_t x = SHMEM_TEAM_INVALID, y = SHMEM_TEAM_INVALID;
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, range, NULL, 0, &x, NULL, 0, &y) == 0);
    const int columns = range < n ? range : n, row = me / columns, column = me % columns;
    const int row_size = n - row * columns < columns ? n - row * columns : columns;
    CHECK(shmem_team_my_pe(x) == column && shmem_team_my_pe(y) == row);
    check_members(x, row * columns, 1, row_size);
    check_members(y, column, columns, (n - column + columns - 1) / columns);
    shmem_team_destroy(x);
    shmem_team_destroy(y);
  }
  shmem_team_t x = SHMEM_TEAM_WORLD, y = SHMEM_TEAM_WORLD;
  CHECK(shmem_team_split_2d(SHMEM_TEAM_INVALID, 1, NULL, 0, &x, NULL, 0, &y) != 0);
  CHECK(x == SHMEM_TEAM_INVALID && y == SHMEM_TEAM_INVALID);
}

static void test_nesting(void) {
  /* All but the first, again and again. */
  shmem_team_t chain[8];
  shmem_team_t parent = SHMEM_TEAM_WORLD;
  int depth = 0, size = n;
  while (depth < 8 && size > 1 && parent != SHMEM_TEAM_INVALID) {
    CHECK(shmem_team_split_strided(parent, 1, 1, size - 1, NULL, 0, &chain[depth]) == 0);
    parent = chain[depth++];
    --size;
    if (parent != SHMEM_TEAM_INVALID)
      check_members(parent, depth, 1, size);
  }
  for (int i = 0; i < depth; ++i) /* parents before children */
    shmem_team_destroy(chain[i]);
}

static void test_config(void) {
  shmem_team_config_t config = {5};
  shmem_team_t team;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, &config, SHMEM_TEAM_NUM_CONTEXTS,
                                 &team) == 0);
  config.num_contexts = -7;
  CHECK(shmem_team_get_config(team, 0, &config) == 0 && config.num_contexts == -7);
  CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0);
  CHECK(config.num_contexts == 5);
  shmem_team_destroy(team);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, &config, 0, &team) == 0);
  CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0);
  CHECK(config.num_contexts == 0);
  shmem_team_destroy(team);
  CHECK(shmem_team_get_config(SHMEM_TEAM_INVALID, 0, &config) != 0);
}

int main(void) {
  shmem_init();
  me = shmem_my_pe();
  n = shmem_n_pes();
  check_members(SHMEM_TEAM_WORLD, 0, 1, n);
  CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD) == -1);
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_INVALID) == -1);

  /* Of the shared team everybody's memory can be reached by a pointer. */
  static int word;
  int* heap = shmem_malloc(sizeof *heap);
  const int shared = shmem_team_n_pes(SHMEM_TEAM_SHARED);
  CHECK(shared >= 1 && shared <= n && shmem_team_my_pe(SHMEM_TEAM_SHARED) >= 0);
  for (int i = 0; i < shared; ++i) {
    const int pe = shmem_team_translate_pe(SHMEM_TEAM_SHARED, i, SHMEM_TEAM_WORLD);
    CHECK(pe >= 0 && shmem_ptr(heap, pe) != NULL);
  }
  (void)word;
  shmem_free(heap);
  test_strided();
  test_2d();
  test_nesting();
  test_config();
  /* More in all than any pool holds at once. */
  for (int i = 0; i < 300; ++i) {
    shmem_team_t team;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team) == 0);
    shmem_team_destroy(team);
  }
  shmem_team_destroy(SHMEM_TEAM_INVALID);
  shmem_finalize();
  return 0;
}
