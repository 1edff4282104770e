/* The same one-sided operations through MPI's windows. */
#include <mpi.h>
#include <string.h>

#include "timing.h"

static const size_t sizes[] = {8, 4096, 65536, 1048576, 4194304};
enum { n_sizes = sizeof sizes / sizeof *sizes };

static double sample_us[samples];

static void move(MPI_Win window, char* mine, size_t size_bytes, int me, int get) {
  const int batch = batch_of(size_bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) {
    for (int s = -20; s < samples; ++s) {
      const double start = now_us();
      for (int i = 0; i < batch; ++i) {
        if (get)
          MPI_Get(mine, (int)size_bytes, MPI_BYTE, 1, 0, (int)size_bytes, MPI_BYTE, window);
        else
          MPI_Put(mine, (int)size_bytes, MPI_BYTE, 1, 0, (int)size_bytes, MPI_BYTE, window);
        MPI_Win_flush(1, window);
      }
      if (s >= 0)
        sample_us[s] = (now_us() - start) / batch;
    }
    tell(get ? "get-latency" : "put-latency", size_bytes, sample_us);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void ping_pong(MPI_Win window, volatile long* flag, int me) {
  const int batch = replied_batch;
  long turn = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int s = -20; s < samples; ++s) {
    const double start = now_us();
    for (int i = 0; i < batch; ++i) {
      ++turn;
      if (me == 0) {
        MPI_Put(&turn, 1, MPI_LONG, 1, 0, 1, MPI_LONG, window);
        MPI_Win_flush(1, window);
      }
      while (*flag < turn)
        MPI_Win_sync(window);
      if (me == 1) {
        MPI_Put(&turn, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
        MPI_Win_flush(0, window);
      }
    }
    if (s >= 0)
      sample_us[s] = (now_us() - start) / batch / 2;
  }
  if (me == 0)
    tell("put-pingpong", 8, sample_us);
}

static void fetch_add(MPI_Win window, int me) {
  const int batch = batch_of(8);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) {
    const long one = 1;
    long old = 0;
    for (int s = -20; s < samples; ++s) {
      const double start = now_us();
      for (int i = 0; i < batch; ++i) {
        MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 0, MPI_SUM, window);
        MPI_Win_flush(1, window);
      }
      if (s >= 0)
        sample_us[s] = (now_us() - start) / batch;
    }
    tell("atomic-fetch-add", 8, sample_us);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void barrier(int me) {
  const int batch = replied_batch;
  for (int s = -20; s < samples; ++s) {
    const double start = now_us();
    for (int i = 0; i < batch; ++i)
      MPI_Barrier(MPI_COMM_WORLD);
    if (s >= 0)
      sample_us[s] = (now_us() - start) / batch;
  }
  if (me == 0)
    tell("barrier", 0, sample_us);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int me = 0, n = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  if (n != 2)
    MPI_Abort(MPI_COMM_WORLD, 2);
  char* base = NULL;
  MPI_Win window;
  MPI_Win_allocate((MPI_Aint)sizes[n_sizes - 1], 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  char* mine = malloc(sizes[n_sizes - 1]);
  memset(base, 0, sizes[n_sizes - 1]);
  memset(mine, me + 1, sizes[n_sizes - 1]);
  MPI_Win_lock_all(0, window);
  for (int get = 0; get < 2; ++get)
    for (int i = 0; i < n_sizes; ++i)
      move(window, mine, sizes[i], me, get);
  memset(base, 0, sizeof(long));
  ping_pong(window, (volatile long*)base, me);
  fetch_add(window, me);
  barrier(me);
  MPI_Win_unlock_all(window);
  free(mine);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
