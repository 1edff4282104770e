// A program by NVSHMEM's names: the random programs of the device API, of threads, warps and
// blocks, compared to the bit. Prints "PE i: well", or what is wrong. The first argument says what
// else: "far" puts to a PE that does not exist, "outside" behind the heap, "differ" calls a
// collective with another size on each PE, "late" waits for a signal that never comes, "both"
// gets from a PE that does not exist and then faults, "end" ends the job.
#include <cstdio>
#include <cstring>
#include <nvshmem.h>
#include <nvshmemx.h>
#include <vector>

#include "tests/support/nvshmem_program.cuh"

namespace shmemctl::test {
namespace {

int mistakes = 0;

void require(cudaError_t result) {
  if (result == cudaSuccess)
    return;
  std::printf("PE %d: %s\n", nvshmem_my_pe(), cudaGetErrorString(result));
  nvshmem_global_exit(1);
}
void expect(bool condition, const char* what, const char* scope) {
  if (condition)
    return;
  ++mistakes;
  std::printf("PE %d: %s by %s are wrong\n", nvshmem_my_pe(), what, scope);
}

/// The threads beyond one scope have nothing to do.
template <class Scope>
__device__ bool is_outside() {
  return static_cast<int>(threadIdx.x) >= Scope::size();
}
template <class Scope>
__global__ void one_sided(std::byte* heap, const RmaStep* steps, int count) {
  if (!is_outside<Scope>())
    run_program_by_names<Scope>(heap, steps, count);
}
template <class Scope>
__global__ void collectives(std::byte* heap, std::size_t heap_bytes, const Call* calls, int count,
                            std::uint64_t* wrong) {
  if (!is_outside<Scope>())
    CollectivesByNames<Scope>(heap, heap_bytes, calls, count, wrong, 1).run();
}

template <class T>
T* on_gpu(const std::vector<T>& values) {
  T* memory = nullptr;
  require(cudaMalloc(&memory, values.size() * sizeof(T)));
  require(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

template <class Scope>
void run_one_sided(std::byte* heap, const char* scope, unsigned seed, int threads) {
  const int me = nvshmem_my_pe();
  const RmaPrograms programs(nvshmem_n_pes(), seed, 4, 60, 20000);
  require(cudaMemcpy(heap, programs.before(me).data(), RmaPrograms::heap_bytes,
                     cudaMemcpyHostToDevice));
  nvshmem_barrier_all();
  const std::vector<RmaStep>& steps = programs.steps(me);
  RmaStep* const there = on_gpu(steps);
  one_sided<Scope><<<1, threads>>>(heap, there, static_cast<int>(steps.size()));
  require(cudaGetLastError());
  require(cudaDeviceSynchronize());
  nvshmem_barrier_all();
  std::vector<std::uint8_t> after(RmaPrograms::heap_bytes);
  require(cudaMemcpy(after.data(), heap, after.size(), cudaMemcpyDeviceToHost));
  expect(after == programs.after(me), "one-sided operations", scope);
  require(cudaFree(there));
  nvshmem_barrier_all();
}

template <class Scope>
void run_collectives(std::byte* heap, std::size_t heap_bytes, const char* scope, unsigned seed,
                     int threads) {
  const std::vector<Call> calls = random_calls(seed, 60, 40000);
  Call* const there = on_gpu(calls);
  std::uint64_t* const wrong = on_gpu(std::vector<std::uint64_t>{0});
  collectives<Scope>
      <<<1, threads>>>(heap, heap_bytes, there, static_cast<int>(calls.size()), wrong);
  require(cudaGetLastError());
  require(cudaDeviceSynchronize());
  std::uint64_t count = 0;
  require(cudaMemcpy(&count, wrong, sizeof count, cudaMemcpyDeviceToHost));
  expect(count == 0, "collectives", scope);
  require(cudaFree(wrong));
  require(cudaFree(there));
  nvshmem_barrier_all();
}

__global__ void maxloc(double2* pairs, int count, std::uint64_t* wrong) {
  const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
  for (int k = static_cast<int>(threadIdx.x); k < count; k += static_cast<int>(blockDim.x))
    pairs[k] = {k % n == me ? 1.5 : -0.5 * me, 100.0 * me + k};
  __syncthreads();
  if (nvshmemx_double2_maxloc_reduce_block(NVSHMEM_TEAM_WORLD, pairs, pairs,
                                           static_cast<std::size_t>(count)) != 0)
    *wrong = 1;
  for (int k = static_cast<int>(threadIdx.x); k < count; k += static_cast<int>(blockDim.x))
    if (pairs[k].x != 1.5 || pairs[k].y != 100.0 * (k % n) + k)
      *wrong = 2;
}

__global__ void go_wrong(std::byte* heap, std::size_t heap_bytes, const char* how) {
  const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
  auto* const words = reinterpret_cast<std::uint64_t*>(heap);
  if (how[0] == 'f')
    nvshmem_uint64_p(words, 1, n);
  else if (how[0] == 'o')
    nvshmem_putmem(heap + heap_bytes, heap, std::size_t{1} << 40, 0);
  else if (how[0] == 'd')
    nvshmem_fcollectmem(NVSHMEM_TEAM_WORLD, heap, heap + heap_bytes / 2, 8 + 8 * me);
  else if (how[0] == 'l' && me == 0)
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
  else if (how[0] == 'b') {
    const std::uint64_t seen = nvshmem_uint64_g(words, n);
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): meant
    *reinterpret_cast<volatile std::uint64_t*>(seen) = 1;
  } else if (how[0] == 'e')
    nvshmem_global_exit(7);
}

} // namespace
} // namespace shmemctl::test

int main(int argc, char** argv) {
  using namespace shmemctl::test;
  namespace device = shmemctl::device;
  nvshmem_init();
  constexpr std::size_t heap_bytes = std::size_t{4} << 20;
  static_assert(RmaPrograms::heap_bytes <= heap_bytes, "one block of memory for all programs");
  auto* const heap = static_cast<std::byte*>(nvshmem_malloc(heap_bytes));
  if (argc > 1) {
    char* how = nullptr;
    require(cudaMalloc(&how, 8));
    require(cudaMemcpy(how, argv[1], std::strlen(argv[1]) + 1, cudaMemcpyHostToDevice));
    nvshmem_barrier_all();
    go_wrong<<<1, 1>>>(heap, heap_bytes, how);
    require(cudaGetLastError());
    cudaDeviceSynchronize();
    nvshmem_barrier_all();
    nvshmem_barrier_all(); // at this point the job has ended at the latest
    return 0;
  }
  for (unsigned round = 0; round < 4; ++round) {
    run_one_sided<device::Thread>(heap, "threads", 200 + round, 1);
    run_one_sided<device::Warp>(heap, "warps", 210 + round, 32);
    run_one_sided<device::Block>(heap, "blocks", 220 + round, round == 0 ? 1024 : 96);
    run_collectives<device::Thread>(heap, heap_bytes, "threads", 230 + round, 1);
    run_collectives<device::Warp>(heap, heap_bytes, "warps", 240 + round, 32);
    run_collectives<device::Block>(heap, heap_bytes, "blocks", 250 + round, round == 0 ? 512 : 96);
  }
  std::uint64_t* const wrong = on_gpu(std::vector<std::uint64_t>{0});
  maxloc<<<1, 64>>>(reinterpret_cast<double2*>(heap), 100, wrong);
  require(cudaGetLastError());
  std::uint64_t said = 0;
  require(cudaMemcpy(&said, wrong, sizeof said, cudaMemcpyDeviceToHost));
  expect(said == 0, "largest values and their places", "blocks");
  require(cudaFree(wrong));
  nvshmem_barrier_all();
  nvshmem_free(heap);
  if (mistakes == 0)
    std::printf("PE %d: well\n", nvshmem_my_pe());
  nvshmem_finalize();
  return mistakes == 0 ? 0 : 1;
}
