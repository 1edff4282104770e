/* One-sided operations between PE 0 and PE 1 through any OpenSHMEM library: compiled with Open
 * MPI's oshcc and with libshmemctl. */
#include <shmem.h>
#include <string.h>

#include "timing.h"

static const size_t sizes[] = {8, 4096, 65536, 1048576, 4194304};
enum { n_sizes = sizeof sizes / sizeof *sizes };

static double sample_us[samples];

static void put(char* target, const char* source, size_t size_bytes, int me) {
  const int batch = batch_of(size_bytes);
  shmem_barrier_all();
  if (me == 0) {
    for (int s = -20; s < samples; ++s) {
      const double start = now_us();
      for (int i = 0; i < batch; ++i) {
        shmem_putmem(target, source, size_bytes, 1);
        shmem_quiet();
      }
      if (s >= 0)
        sample_us[s] = (now_us() - start) / batch;
    }
    tell("put-latency", size_bytes, sample_us);
  }
  shmem_barrier_all();
}

static void get(char* target, const char* source, size_t size_bytes, int me) {
  const int batch = batch_of(size_bytes);
  shmem_barrier_all();
  if (me == 0) {
    for (int s = -20; s < samples; ++s) {
      const double start = now_us();
      for (int i = 0; i < batch; ++i)
        shmem_getmem(target, source, size_bytes, 1);
      if (s >= 0)
        sample_us[s] = (now_us() - start) / batch;
    }
    tell("get-latency", size_bytes, sample_us);
  }
  shmem_barrier_all();
}

/* Half of a round trip of an 8-byte put that the other PE polls. */
static void ping_pong(long* flag, int me) {
  const int batch = replied_batch;
  long turn = 0;
  *flag = 0;
  shmem_barrier_all();
  for (int s = -20; s < samples; ++s) {
    const double start = now_us();
    for (int i = 0; i < batch; ++i) {
      ++turn;
      if (me == 0)
        shmem_long_p(flag, turn, 1);
      shmem_long_wait_until(flag, SHMEM_CMP_GE, turn);
      if (me == 1)
        shmem_long_p(flag, turn, 0);
    }
    if (s >= 0)
      sample_us[s] = (now_us() - start) / batch / 2;
  }
  if (me == 0)
    tell("put-pingpong", 8, sample_us);
}

static void fetch_add(long* counter, int me) {
  const int batch = batch_of(8);
  shmem_barrier_all();
  if (me == 0) {
    for (int s = -20; s < samples; ++s) {
      const double start = now_us();
      for (int i = 0; i < batch; ++i)
        (void)shmem_long_atomic_fetch_add(counter, 1, 1);
      if (s >= 0)
        sample_us[s] = (now_us() - start) / batch;
    }
    tell("atomic-fetch-add", 8, sample_us);
  }
  shmem_barrier_all();
}

static void barrier(int me) {
  const int batch = replied_batch;
  for (int s = -20; s < samples; ++s) {
    const double start = now_us();
    for (int i = 0; i < batch; ++i)
      shmem_barrier_all();
    if (s >= 0)
      sample_us[s] = (now_us() - start) / batch;
  }
  if (me == 0)
    tell("barrier", 0, sample_us);
}

int main(void) {
  shmem_init();
  const int me = shmem_my_pe();
  if (shmem_n_pes() != 2) {
    fprintf(stderr, "2 PEs are needed\n");
    shmem_global_exit(2);
  }
  char* target = shmem_malloc(sizes[n_sizes - 1]);
  char* source = shmem_malloc(sizes[n_sizes - 1]);
  long* word = shmem_malloc(sizeof *word);
  memset(source, me + 1, sizes[n_sizes - 1]);
  memset(target, 0, sizes[n_sizes - 1]);
  *word = 0;
  for (int i = 0; i < n_sizes; ++i)
    put(target, source, sizes[i], me);
  for (int i = 0; i < n_sizes; ++i)
    get(target, source, sizes[i], me);
  ping_pong(word, me);
  fetch_add(word, me);
  barrier(me);
  shmem_finalize();
  return 0;
}
