/* The profiling interface: this program's own shmem_long_put comes before the library's. */
#include "check.h"
#include <pshmem.h>

static int calls;
static long target;

void shmem_long_put(long* dest, const long* source, size_t nelems, int pe) {
  ++calls;
  pshmem_long_put(dest, source, nelems, pe);
}

int main(void) {
  pshmem_init();
  const long me = pshmem_my_pe();
  const int next = (int)(me + 1) % pshmem_n_pes(), n = shmem_n_pes();
  shmem_pcontrol(1);
  shmem_long_put(&target, &me, 1, next);
  pshmem_barrier_all();
  CHECK(calls == 1 && target == (me + n - 1) % n);
  shmem_finalize();
  return 0;
}
