/* Set-up, queries, accessibility. */
#include <string.h>

#include "check.h"

static long global_word;
static int initialised = 7;
static const char version_name[] = SHMEM_VENDOR_STRING;

int main(void) {
  int provided = -1;
  CHECK(shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided) == 0);
  CHECK(provided == SHMEM_THREAD_FUNNELED);
  provided = -1;
  shmem_query_thread(&provided);
  CHECK(provided == SHMEM_THREAD_FUNNELED);
  CHECK(initialised == 7); /* sharing the program's data has not changed it */

  const int me = shmem_my_pe(), n = shmem_n_pes();
  CHECK(n >= 1 && me >= 0 && me < n);

  int major = 0, minor = 0;
  shmem_info_get_version(&major, &minor);
  CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION);
  CHECK(major == 1 && minor == 5);
  char name[SHMEM_MAX_NAME_LEN];
  shmem_info_get_name(name);
  CHECK(strcmp(name, version_name) == 0);
  shmem_pcontrol(1);
  shmem_pcontrol(2, "anything", 3);

  long on_stack = 0;
  char* block = shmem_malloc(100);
  CHECK(block != NULL);
  for (int pe = 0; pe < n; ++pe) {
    CHECK(shmem_pe_accessible(pe) == 1);
    CHECK(shmem_addr_accessible(&global_word, pe) == 1);
    CHECK(shmem_addr_accessible(block, pe) == 1);
    CHECK(shmem_addr_accessible(block + 99, pe) == 1);
    CHECK(shmem_addr_accessible(&on_stack, pe) == 0);
  }
  CHECK(shmem_pe_accessible(-1) == 0 && shmem_pe_accessible(n) == 0);
  CHECK(shmem_addr_accessible(block, n) == 0);

  /* On its own PE an object is where it is. */
  CHECK(shmem_ptr(block, me) == block && shmem_ptr(&global_word, me) == &global_word);
  CHECK(shmem_ptr(&on_stack, me) == NULL);
  const int next = (me + 1) % n;
  global_word = -1;
  shmem_barrier_all();
  long* there = shmem_ptr(&global_word, next);
  if (there)
    *there = me;
  else
    shmem_long_p(&global_word, me, next);
  shmem_barrier_all();
  CHECK(global_word == (me + n - 1) % n);
  shmem_free(block);
  shmem_finalize();
  return 0;
}
