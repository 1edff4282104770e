/* Contexts: options, teams' numbering, limits, handles. */
#include "check.h"

static shmem_ctx_t initialised_statically = SHMEM_CTX_DEFAULT;
static shmem_ctx_t invalid_statically = SHMEM_CTX_INVALID;
static int words[8];

static void test_options(int next) {
  const long options[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE,
                          SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE};
  shmem_ctx_t contexts[5];
  for (int i = 0; i < 5; ++i) {
    CHECK(shmem_ctx_create(options[i], &contexts[i]) == 0);
    CHECK(contexts[i] != SHMEM_CTX_INVALID && contexts[i] != SHMEM_CTX_DEFAULT);
    for (int other = 0; other < i; ++other)
      CHECK(contexts[i] != contexts[other]);
    shmem_team_t team = SHMEM_TEAM_INVALID;
    CHECK(shmem_ctx_get_team(contexts[i], &team) == 0 && team == SHMEM_TEAM_WORLD);
  }
  const int sources[5] = {100, 101, 102, 103, 104}; // read until the contexts are quiet
  for (int i = 0; i < 5; ++i)
    shmem_ctx_int_put_nbi(contexts[i], &words[i], &sources[i], 1, next);
  for (int i = 0; i < 5; ++i) {
    shmem_ctx_fence(contexts[i]);
    shmem_ctx_quiet(contexts[i]);
    CHECK(shmem_ctx_int_g(contexts[i], &words[i], next) == 100 + i);
    shmem_ctx_destroy(contexts[i]);
  }
  shmem_barrier_all();
}

static void test_invalid(void) {
  shmem_team_t team = SHMEM_TEAM_WORLD;
  CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0 && team == SHMEM_TEAM_INVALID);
  CHECK(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) == 0 && team == SHMEM_TEAM_WORLD);
  shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
  CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID);
  shmem_ctx_destroy(SHMEM_CTX_INVALID);
  shmem_ctx_quiet(SHMEM_CTX_INVALID);
  shmem_ctx_fence(SHMEM_CTX_INVALID);
  CHECK(initialised_statically == SHMEM_CTX_DEFAULT && invalid_statically != SHMEM_CTX_DEFAULT);
}

/* Whatever the limit is: reaching it is no error, and a context that goes makes room. */
static void test_limit(void) {
  enum { MANY = 4096 };
  static shmem_ctx_t contexts[MANY];
  int made = 0;
  while (made < MANY && shmem_ctx_create(0, &contexts[made]) == 0)
    ++made;
  CHECK(made >= 16);
  if (made < MANY) {
    CHECK(contexts[made] == SHMEM_CTX_INVALID);
    shmem_ctx_destroy(contexts[0]);
    CHECK(shmem_ctx_create(0, &contexts[0]) == 0);
  }
  for (int i = 0; i < made; ++i)
    shmem_ctx_destroy(contexts[i]);
}

/* On a team's context, PE numbers are the team's. */
static void test_team(int me, int n) {
  static long cell, counter;
  shmem_team_t team;
  const shmem_team_config_t config = {2};
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, &config, SHMEM_TEAM_NUM_CONTEXTS,
                                 &team) == 0);
  CHECK(shmem_team_my_pe(team) == n - 1 - me);
  shmem_ctx_t ctx, second;
  CHECK(shmem_team_create_ctx(team, 0, &ctx) == 0);
  CHECK(shmem_team_create_ctx(team, SHMEM_CTX_PRIVATE, &second) == 0);
  shmem_team_t found = SHMEM_TEAM_INVALID;
  CHECK(shmem_ctx_get_team(ctx, &found) == 0 && found == team);
  cell = -1;
  counter = 0;
  shmem_barrier_all();
  const int team_next = (shmem_team_my_pe(team) + 1) % n;
  shmem_ctx_long_p(ctx, &cell, shmem_team_my_pe(team), team_next);
  shmem_ctx_long_atomic_add(second, &counter, 1, 0); /* world PE n - 1 */
  shmem_ctx_quiet(ctx);
  shmem_ctx_quiet(second);
  shmem_barrier_all();
  CHECK(cell == (shmem_team_my_pe(team) + n - 1) % n);
  CHECK(counter == (me == n - 1 ? n : 0));
  shmem_ctx_destroy(second);
  shmem_team_destroy(team); /* takes the other context with it */

  CHECK(shmem_team_create_ctx(SHMEM_TEAM_SHARED, 0, &ctx) == 0);
  CHECK(shmem_ctx_get_team(ctx, &found) == 0 && found == SHMEM_TEAM_SHARED);
  const int shared_me = shmem_team_my_pe(SHMEM_TEAM_SHARED);
  const int shared_n = shmem_team_n_pes(SHMEM_TEAM_SHARED);
  cell = -1;
  shmem_barrier_all();
  shmem_ctx_long_p(ctx, &cell, shared_me, (shared_me + 1) % shared_n);
  shmem_ctx_quiet(ctx);
  shmem_barrier_all();
  CHECK(cell == (shared_me + shared_n - 1) % shared_n);
  shmem_ctx_destroy(ctx);
}

int main(void) {
  shmem_init();
  const int me = shmem_my_pe(), n = shmem_n_pes();
  test_options((me + 1) % n);
  test_invalid();
  test_limit();
  test_team(me, n);
  shmem_barrier_all();
  shmem_finalize();
  return 0;
}
