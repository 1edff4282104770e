// A ring of GPUs. Each PE's kernel puts a row to the next PE with a signal, waits for the one that
// it gets, and meets the others of a team; then a stream does the same.
// docs/explanation/gpu_programs.md
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <shmemx_device.cuh>

namespace device = shmemctl::device;

constexpr int words = 1000;

__global__ void __launch_bounds__(128)
    ring(const __grid_constant__ shmemctl::DeviceJob job, int team, std::uint64_t* inbox,
         const std::uint64_t* outbox, std::uint64_t* signal) {
  const int next = (job.pe + 1) % job.n_pes;
  const int previous = (job.pe + job.n_pes - 1) % job.n_pes;
  device::put_signal<device::Block>(job, inbox, outbox, words * sizeof *outbox, signal, 1, next);
  // A wait that takes too long is reported to the host, and false.
  if (!device::signal_wait_until<device::Block>(job, signal, device::Compare::equal, 1, previous))
    return;
  device::barrier<device::Block>(job, team);
}

void require(cudaError_t result) {
  if (result == cudaSuccess)
    return;
  std::fprintf(stderr, "PE %d: %s\n", shmem_my_pe(), cudaGetErrorString(result));
  shmem_global_exit(1);
}

std::vector<std::uint64_t> row_of(int pe) {
  std::vector<std::uint64_t> row(words);
  for (int i = 0; i < words; ++i)
    row[i] = 1000000u * pe + i;
  return row;
}

void verify(const std::uint64_t* inbox, int sender, const char* by) {
  std::vector<std::uint64_t> row(words);
  require(cudaMemcpy(row.data(), inbox, words * sizeof row[0], cudaMemcpyDefault));
  if (row == row_of(sender))
    return;
  std::fprintf(stderr, "PE %d: the row from PE %d, put by a %s, is wrong\n", shmem_my_pe(), sender,
               by);
  shmem_global_exit(1);
}

int main() {
  shmemx_gpu_init(nullptr); // every PE gets a GPU, or the job ends and says why
  const int me = shmem_my_pe(), n = shmem_n_pes();
  const int next = (me + 1) % n, previous = (me + n - 1) % n;
  shmem_team_t everybody;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, nullptr, 0, &everybody);

  auto* inbox = static_cast<std::uint64_t*>(shmemx_gpu_calloc(words, sizeof(std::uint64_t)));
  auto* outbox = static_cast<std::uint64_t*>(shmemx_gpu_calloc(words, sizeof(std::uint64_t)));
  auto* signal = static_cast<std::uint64_t*>(shmemx_gpu_calloc(1, sizeof(std::uint64_t)));

  const cudaStream_t stream = shmemx_gpu_stream();
  const std::vector<std::uint64_t> own_row = row_of(me);
  require(
      cudaMemcpyAsync(outbox, own_row.data(), words * sizeof *outbox, cudaMemcpyDefault, stream));
  ring<<<1, 128, 0, stream>>>(shmemx_gpu_job(), shmemx_gpu_team(everybody), inbox, outbox, signal);
  require(cudaGetLastError());
  shmemx_gpu_wait(stream); // also for what kernels have reported
  verify(inbox, previous, "kernel");

  require(cudaMemsetAsync(inbox, 0, words * sizeof *inbox, stream));
  shmemx_gpu_wait(stream);
  shmem_barrier_all(); // nobody puts into a row that is still to be cleared
  shmemx_putmem_signal_on_stream(inbox, outbox, words * sizeof *outbox, signal, 2, SHMEM_SIGNAL_SET,
                                 next, stream);
  shmemx_signal_wait_until_on_stream(signal, SHMEM_CMP_EQ, 2, stream);
  shmemx_barrier_on_stream(everybody, stream);
  shmemx_gpu_wait(stream);
  verify(inbox, previous, "stream");

  if (me == 0)
    std::printf("%d PEs: both rings are right, PE 0 puts by %s\n", n, shmemx_gpu_path(next));
  shmemx_gpu_free(signal);
  shmemx_gpu_free(outbox);
  shmemx_gpu_free(inbox);
  shmem_team_destroy(everybody);
  shmem_finalize();
  return 0;
}
