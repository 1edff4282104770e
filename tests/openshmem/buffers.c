/* Registered buffers (shmemx.h): malloc, the stack, a global variable, read-only memory. */
#include <stdint.h>
#include <string.h>

#include "check.h"
#include <shmemx.h>

enum { BLOCK = 10001, MOST = 64 };
static shmemx_buffer_t names[MOST];
static unsigned char global_block[MOST * BLOCK];
static int me, n;

static unsigned char mark(int pe, size_t at) {
  return (unsigned char)((at * 2654435761u + (unsigned)pe * 97u) >> 5);
}

static void fill(unsigned char* block, int pe) {
  for (size_t at = 0; at < BLOCK; ++at)
    block[at] = mark(pe, at);
}

static int is_of(const unsigned char* block, int pe) {
  for (size_t at = 0; at < BLOCK; ++at)
    if (block[at] != mark(pe, at))
      return 0;
  return 1;
}

/* Everybody's name of a buffer, at everybody. */
static void pass_on(const void* buffer) {
  shmemx_buffer_t mine;
  CHECK(shmemx_buffer_name(buffer, &mine) == 0);
  for (int pe = 0; pe < n; ++pe)
    shmem_putmem(&names[me], &mine, sizeof mine, pe);
  shmem_barrier_all();
}

/* Everybody writes its block into everybody's buffer, and reads it back. */
static void test_all_pairs(unsigned char* buffer, const char* way) {
  static unsigned char block[BLOCK], back[BLOCK];
  memset(buffer, 0xee, (size_t)n * BLOCK);
  CHECK(shmemx_buffer_register(buffer, (size_t)n * BLOCK) == 0);
  pass_on(buffer);
  fill(block, me);
  for (int pe = 0; pe < n; ++pe) {
    if (pe != me)
      CHECK(strcmp(shmemx_buffer_path(&names[pe]), way) == 0 || strcmp(way, "any") == 0);
    shmemx_buffer_put(&names[pe], (size_t)me * BLOCK, block, BLOCK);
    memset(back, 0, BLOCK);
    shmemx_buffer_get(back, &names[pe], (size_t)me * BLOCK, BLOCK);
    CHECK(memcmp(back, block, BLOCK) == 0);
  }
  shmem_barrier_all();
  for (int pe = 0; pe < n; ++pe)
    CHECK(is_of(buffer + (size_t)pe * BLOCK, pe));
  CHECK(shmemx_buffer_unregister(buffer) == 0);
  CHECK(shmemx_buffer_unregister(buffer) != 0);
  for (int pe = 0; pe < n; ++pe)
    CHECK(is_of(buffer + (size_t)pe * BLOCK, pe));
  shmem_barrier_all();
}

/* Loads and stores of this process in everybody's buffer; twice held is twice let go. */
static void test_held(void) {
  static unsigned char block[BLOCK];
  memset(global_block, 0xee, sizeof global_block);
  CHECK(shmemx_buffer_register(global_block, (size_t)n * BLOCK) == 0);
  pass_on(global_block);
  fill(block, me);
  for (int pe = 0; pe < n; ++pe) {
    unsigned char* theirs = shmemx_buffer_hold(&names[pe]);
    CHECK(theirs != NULL && shmemx_buffer_hold(&names[pe]) == theirs);
    memcpy(theirs + (size_t)me * BLOCK, block, BLOCK);
    CHECK(shmemx_buffer_let_go(theirs) == 0);
    CHECK(shmemx_buffer_let_go(theirs) == 0);
    CHECK(shmemx_buffer_let_go(theirs) != 0);
  }
  shmem_barrier_all();
  for (int pe = 0; pe < n; ++pe)
    CHECK(is_of(global_block + (size_t)pe * BLOCK, pe));
  CHECK(shmemx_buffer_unregister(global_block) == 0);
  shmem_barrier_all();
}

static void test_stack(void) {
  unsigned char local[8 * BLOCK];
  if (n <= 8)
    test_all_pairs(local, "any"); /* never mapped */
}

static void test_refused(void) {
  shmemx_buffer_t name;
  int local = 0;
  CHECK(shmemx_buffer_name(&local, &name) != 0);
  CHECK(shmemx_buffer_unregister(&local) != 0);
}

/* A put of heap memory to the heap needs no registration, and is not disturbed by one. */
static void test_local_side(void) {
  unsigned char* symmetric = shmem_malloc(BLOCK);
  unsigned char* local = malloc(BLOCK);
  CHECK(symmetric != NULL && local != NULL);
  fill(local, me);
  CHECK(shmemx_buffer_register(local, BLOCK) == 0);
  shmem_putmem(symmetric, local, BLOCK, (me + 1) % n);
  shmem_barrier_all();
  CHECK(is_of(symmetric, (me + n - 1) % n));
  shmem_getmem(local, symmetric, BLOCK, (me + 1) % n);
  CHECK(is_of(local, me));
  CHECK(shmemx_buffer_unregister(local) == 0);
  free(local);
  shmem_free(symmetric);
}

int main(void) {
  shmem_init();
  me = shmem_my_pe();
  n = shmem_n_pes();
  CHECK(n <= MOST);
  unsigned char* large = malloc((size_t)n * BLOCK);
  CHECK(large != NULL);
  for (int round = 0; round < 3; ++round)
    test_all_pairs(large, "any");
  free(large);
  test_all_pairs(global_block, "zero-copy"); /* shared memory already */
  test_held();
  test_stack();
  test_refused();
  test_local_side();
  shmem_finalize();
  return 0;
}
