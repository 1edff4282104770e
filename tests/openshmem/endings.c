/* The ways in which a job ends; the argument says which. Told apart by the exit status. */
#include <string.h>
#include <unistd.h>

#include "check.h"

static long never;
static long n_here; /* on the last PE: the others that have printed their line */

static void sleep_long(void) {
  sleep(60);
}

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "";
  if (strcmp(way, "before-init") == 0) {
    shmem_barrier_all(); /* an error */
    return 0;
  }
  shmem_init();
  const int me = shmem_my_pe(), last = shmem_n_pes() - 1;
  if (strcmp(way, "init-twice") == 0)
    shmem_init(); /* an error */
  if (strcmp(way, "implicit") == 0)
    return 0; /* finalised by the library */
  if (strcmp(way, "finalize-then-status") == 0) {
    shmem_finalize();
    return me == 0 ? 5 : 0;
  }
  if (strcmp(way, "child") == 0) {
    /* A child process ends without taking the PE's library with it. */
    const int status = system("exit 3");
    CHECK(status != 0);
    shmem_barrier_all();
    shmem_finalize();
    return 0;
  }
  if (strcmp(way, "bad-pe-of-all") == 0)
    shmem_long_p(&never, 1, last + 1); /* an error of all PEs alike */
  if (strcmp(way, "slow-exit") == 0 && me != last)
    atexit(sleep_long);
  if (me == last) {
    /* Else a PE may be ended before it has come to its line. */
    shmem_long_wait_until(&n_here, SHMEM_CMP_EQ, last);
    if (strcmp(way, "global-exit") == 0)
      shmem_global_exit(17);
    if (strcmp(way, "global-exit-0") == 0 || strcmp(way, "slow-exit") == 0)
      shmem_global_exit(0);
    if (strcmp(way, "status") == 0)
      exit(7);
    if (strcmp(way, "abort") == 0)
      abort();
    if (strcmp(way, "bad-pe") == 0)
      shmem_long_p(&never, 1, last + 1); /* an error */
    if (strcmp(way, "bad-address") == 0) {
      long on_stack = 0;
      shmem_long_p(&on_stack, 1, 0); /* an error */
    }
  }
  /* The others compute, or wait for what never comes. */
  printf("PE %d was here\n", me);
  if (me != last)
    shmem_long_atomic_inc(&n_here, last);
  if (me % 2)
    for (;;)
      pause();
  shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
  shmem_finalize();
  return 0;
}
