/* MPI and OpenSHMEM in one program. The argument says which is initialised first. */
#include <mpi.h>
#include <string.h>

#include "check.h"

static int from_left, rank_there;

/* Each message is due before the next one: neither library may hold the other up. */
static void ring(int rank, int size) {
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  for (int round = 0; round < 50; ++round) {
    int by_mpi = -1;
    MPI_Sendrecv(&round, 1, MPI_INT, right, 0, &by_mpi, 1, MPI_INT, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK(by_mpi == round);
    shmem_int_p(&from_left, round + 1, right);
    shmem_int_wait_until(&from_left, SHMEM_CMP_EQ, round + 1);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  const int mpi_first = argc > 1 && strcmp(argv[1], "mpi-first") == 0;
  if (mpi_first)
    MPI_Init(&argc, &argv);
  shmem_init();
  int initialised = 0;
  MPI_Initialized(&initialised); /* the bootstrap may have done it */
  if (!initialised)
    MPI_Init(&argc, &argv);

  int rank = -1, size = 0, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(rank == shmem_my_pe() && size == shmem_n_pes());
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size * (size - 1) / 2);
  shmem_int_p(&rank_there, rank + 1, (rank + 1) % size);
  shmem_barrier_all();
  CHECK(rank_there == (rank + size - 1) % size + 1);
  ring(rank, size);

  if (mpi_first) {
    shmem_finalize();
    MPI_Finalize();
  } else {
    if (!initialised)
      MPI_Finalize();
    shmem_finalize();
  }
  return 0;
}
