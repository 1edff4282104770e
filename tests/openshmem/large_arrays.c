/* Static arrays that are large: initialised ones, one of which little is touched, and constants
 * between them in the medium code model. All but constants are symmetric (OpenSHMEM 1.5, 3.2). */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { LARGE = 200000, MiB = 1 << 20, SPARSE = 512 * MiB };
static long small = 7;
static int values[LARGE] = {1, 2, 3};
static const int constants[LARGE] = {4, 5, 6};
static char sparse[SPARSE];
static long sync_area[SHMEM_BARRIER_SYNC_SIZE];

/* The most memory that this process has ever had, in bytes. */
static long max_resident(void) {
  struct rusage usage;
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  return usage.ru_maxrss * 1024;
}

int main(void) {
  for (int i = 0; i < SHMEM_BARRIER_SYNC_SIZE; ++i)
    sync_area[i] = SHMEM_SYNC_VALUE;
  sparse[100 * MiB] = 9;
  shmem_init();
  const int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n, before = (me + n - 1) % n;
  const volatile int* read_only = constants;
  CHECK(values[0] == 1 && values[2] == 3 && values[LARGE - 1] == 0 && small == 7);
  CHECK(read_only[0] == 4 && read_only[2] == 6 && sparse[100 * MiB] == 9);
  CHECK(shmem_addr_accessible(&small, next) && shmem_addr_accessible(sync_area, next));
  CHECK(shmem_addr_accessible(values, next) && shmem_addr_accessible(&values[LARGE - 1], next));
  CHECK(shmem_addr_accessible(sparse, next) && shmem_addr_accessible(&sparse[SPARSE - 1], next));
  shmem_barrier_all();
  shmem_int_p(&values[LARGE - 1], me + 100, next);
  shmem_int_atomic_add(&values[1], me, next);
  shmem_long_p(&small, me, next);
  shmem_char_p(&sparse[SPARSE - 1], (char)(me + 1), next);
  shmem_barrier(0, 0, n, sync_area);
  CHECK(values[LARGE - 1] == before + 100 && values[1] == 2 + before && small == before);
  CHECK(sparse[SPARSE - 1] == before + 1);
  CHECK(shmem_int_g(&values[2], next) == 3);
  const pid_t child = fork();
  if (child == 0) {
    const int kept = values[LARGE - 1] == before + 100 && sparse[SPARSE - 1] == before + 1;
    _exit(kept && read_only[1] == 5 && sparse[100 * MiB] == 9 ? 0 : 1);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  shmem_barrier_all();
  shmem_finalize();
  if (values[LARGE - 1] != before + 100 || sparse[SPARSE - 1] != before + 1 || read_only[1] != 5)
    return 1;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  /* Pages that nobody touched were never memory of this PE. */
  return max_resident() < SPARSE / 2 ? 0 : 2;
#else
  (void)max_resident;
  return 0;
#endif
}
