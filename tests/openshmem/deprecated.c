/* A program of the time before OpenSHMEM 1.2: start_pes, no finalize. C99. */
#include "check.h"
#include <mpp/shmem.h>
#include <mpp/shmemx.h>

static int cells[4];
static long word, waited;
static short short_word;
static long long wide;
static float real;
static double precise;

int main(void) {
  start_pes(0);
  start_pes(0);
  const int me = _my_pe(), n = _num_pes(), next = (me + 1) % n;
  CHECK(me == shmem_my_pe() && n == shmem_n_pes());
  CHECK(_SHMEM_MAJOR_VERSION == 1 && _SHMEM_CMP_EQ == SHMEM_CMP_EQ);

  int* block = shmalloc(4 * sizeof *block);
  CHECK(block != NULL);
  block[0] = me;
  block = shrealloc(block, 4000 * sizeof *block);
  CHECK(block != NULL && block[0] == me);
  shfree(block);
  block = shmemalign(256, 100);
  CHECK(block != NULL && (uintptr_t)block % 256 == 0);
  shfree(block);

  shmem_set_cache_inv();
  shmem_set_cache_line_inv(cells);
  shmem_clear_cache_inv();
  shmem_clear_cache_line_inv(cells);
  shmem_udcflush();
  shmem_udcflush_line(cells);

  shmem_int_inc(&cells[0], next);
  shmem_int_add(&cells[0], 4, next);
  shmem_barrier_all();
  CHECK(cells[0] == 5);
  shmem_barrier_all();
  CHECK(shmem_int_finc(&cells[0], next) == 5 && shmem_int_fadd(&cells[0], 10, next) == 6);
  CHECK(shmem_int_cswap(&cells[0], 16, 1, next) == 16 && shmem_int_swap(&cells[0], 3, next) == 1);
  shmem_int_set(&cells[0], 8, next);
  shmem_quiet();
  CHECK(shmem_int_fetch(&cells[0], next) == 8);
  CHECK(shmem_long_swap(&word, 7, next) == 0 && shmem_long_cswap(&word, 7, 9, next) == 7);
  CHECK(shmem_longlong_fadd(&wide, 1LL << 40, next) == 0);
  CHECK(shmem_longlong_finc(&wide, next) == 1LL << 40);
  CHECK(shmem_float_swap(&real, 1.5f, next) == 0 && shmem_float_fetch(&real, next) == 1.5f);
  shmem_double_set(&precise, 2.5, next);
  shmem_quiet();
  CHECK(shmem_double_swap(&precise, 0, next) == 2.5);

  /* The old waits; shmem_wait_until is a function for long here. */
  shmem_long_p(&waited, 3, next);
  shmem_wait(&waited, 0);
  shmem_wait_until(&waited, SHMEM_CMP_EQ, 3);
  shmem_long_wait(&waited, 0);
  shmem_short_p(&short_word, 1, next);
  shmem_short_wait(&short_word, 0);
  shmem_int_wait(&cells[0], 0);
  shmem_longlong_wait(&wide, 0);
  return 0;
}
