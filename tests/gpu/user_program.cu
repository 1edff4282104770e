// A program of a user, against the public headers and libshmemctl.a alone: kernels of its own with
// the job by value and in a __constant__ variable, teams, everything on streams, a graph. Prints
// "PE i: well", or what is wrong. With the argument "leave" it returns without shmem_finalize; with
// "late", PE 1 sends nothing and PE 0's kernel waits for it, while the program looks at nothing.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <vector>

#include <shmemx_device.cuh>

namespace device = shmemctl::device;
using Words = std::vector<std::uint64_t>;

namespace {

int me, n, mistakes;
cudaStream_t stream;

void expect(bool condition, const char* what) {
  if (condition)
    return;
  ++mistakes;
  std::printf("PE %d: %s is wrong\n", me, what);
}

void require(cudaError_t result) {
  if (result == cudaSuccess)
    return;
  std::printf("PE %d: %s\n", me, cudaGetErrorString(result));
  shmem_global_exit(1);
}

std::uint64_t* symmetric(std::size_t count) {
  return static_cast<std::uint64_t*>(shmemx_gpu_calloc(count, sizeof(std::uint64_t)));
}

void store(std::uint64_t* to, const Words& words) {
  require(cudaMemcpyAsync(to, words.data(), words.size() * 8, cudaMemcpyDefault, stream));
  shmemx_gpu_wait(stream);
}

Words load(const std::uint64_t* from, std::size_t count) {
  shmemx_gpu_wait(stream);
  Words words(count);
  require(cudaMemcpyAsync(words.data(), from, count * 8, cudaMemcpyDefault, stream));
  shmemx_gpu_wait(stream);
  return words;
}

std::uint64_t mark(int pe, int i) {
  return 1000u * static_cast<unsigned>(pe + 1) + static_cast<unsigned>(i);
}

__constant__ shmemctl::DeviceJob job_of_module;

/// Each thread of a warp adds to every PE's word; the warps of all PEs meet.
__global__ void count_everywhere(std::uint64_t* word) {
  for (int pe = 0; pe < job_of_module.n_pes; ++pe)
    device::atomic_add(job_of_module, word, std::uint64_t{1}, pe);
  device::barrier_all<device::Warp>(job_of_module);
}

__global__ void __launch_bounds__(256)
    exchange(const __grid_constant__ shmemctl::DeviceJob job, int team, std::uint64_t* dest,
             const std::uint64_t* source, std::size_t size_bytes) {
  device::alltoall<device::Block>(job, team, dest, source, size_bytes);
}

__global__ void wait_for_one(const __grid_constant__ shmemctl::DeviceJob job,
                             const std::uint64_t* word) {
  device::signal_wait_until<device::Thread>(job, word, device::Compare::equal, 1, 1);
}

void test_a_constant_job() {
  std::uint64_t* word = symmetric(1);
  const shmemctl::DeviceJob job = shmemx_gpu_job();
  require(
      cudaMemcpyToSymbolAsync(job_of_module, &job, sizeof job, 0, cudaMemcpyHostToDevice, stream));
  count_everywhere<<<1, 32, 0, stream>>>(word);
  require(cudaGetLastError());
  expect(load(word, 1)[0] == 32u * static_cast<unsigned>(n), "a count of all PEs' threads");
  shmemx_gpu_free(word);
}

void test_a_team() {
  shmem_team_t team; // teams in the other order
  shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, nullptr, 0, &team);
  const int my = shmem_team_my_pe(team);
  constexpr int each = 300;
  const auto count = static_cast<std::size_t>(n) * each;
  std::uint64_t *dest = symmetric(count), *source = symmetric(count);
  Words mine(count);
  for (int i = 0; i < static_cast<int>(count); ++i)
    mine[static_cast<std::size_t>(i)] = mark(my, i);
  store(source, mine);
  exchange<<<1, 256, 0, stream>>>(shmemx_gpu_job(), shmemx_gpu_team(team), dest, source, each * 8);
  require(cudaGetLastError());
  const Words got = load(dest, count);
  bool right = true;
  for (int from = 0; from < n; ++from)
    for (int i = 0; i < each; ++i)
      right = right && got[static_cast<std::size_t>(from * each + i)] == mark(from, my * each + i);
  expect(right, "an exchange of a team by kernels");
  shmemx_gpu_free(source);
  shmemx_gpu_free(dest);
  shmem_team_destroy(team);
}

void test_moving_on_a_stream() {
  const auto pes = static_cast<std::size_t>(n);
  std::uint64_t *source = symmetric(pes), *dest = symmetric(pes), *signal = symmetric(1);
  Words mine(pes);
  for (int i = 0; i < n; ++i)
    mine[static_cast<std::size_t>(i)] = mark(me, i);
  store(source, mine);
  shmem_barrier_all();
  const int next = (me + 1) % n, previous = (me + n - 1) % n;
  shmemx_putmem_on_stream(dest, source, 8, next, stream);
  shmemx_quiet_on_stream(stream);
  shmemx_signal_op_on_stream(signal, 3, SHMEM_SIGNAL_ADD, next, stream);
  shmemx_signal_wait_until_on_stream(signal, SHMEM_CMP_GE, 3, stream);
  expect(load(dest, 1)[0] == mark(previous, 0), "a put on a stream");
  shmemx_sync_on_stream(SHMEM_TEAM_WORLD, stream);
  shmemx_getmem_on_stream(dest, source, 8 * pes, next, stream);
  expect(load(dest, pes)[pes - 1] == mark(next, n - 1), "a get on a stream");
  shmemx_barrier_on_stream(SHMEM_TEAM_WORLD, stream);
  shmemx_fcollectmem_on_stream(SHMEM_TEAM_WORLD, dest, source, 8, stream);
  expect(load(dest, pes)[static_cast<std::size_t>(next)] == mark(next, 0), "fcollect");
  shmemx_alltoallmem_on_stream(SHMEM_TEAM_WORLD, dest, source, 8, stream);
  expect(load(dest, pes)[static_cast<std::size_t>(next)] == mark(next, me), "alltoall");
  shmemx_broadcastmem_on_stream(SHMEM_TEAM_WORLD, dest, source, 8 * pes, n - 1, stream);
  expect(load(dest, pes)[0] == mark(n - 1, 0), "broadcast");
  shmemx_barrier_on_stream(SHMEM_TEAM_WORLD, stream);
  shmemx_gpu_wait(stream);
  for (std::uint64_t* block : {signal, dest, source})
    shmemx_gpu_free(block);
}

void test_lists_on_a_stream() {
  // To member i go i + 1 words.
  const auto most = static_cast<std::size_t>(n * (n + 1));
  std::uint64_t *source = symmetric(most), *dest = symmetric(most);
  std::uint64_t* lists = symmetric(3 * static_cast<std::size_t>(n));
  Words mine(most), list(3 * static_cast<std::size_t>(n));
  std::uint64_t at = 0;
  for (int to = 0; to < n; ++to) {
    const auto i = static_cast<std::size_t>(to);
    const std::uint64_t bytes = 8 * (i + 1);
    list[i] = bytes;
    list[static_cast<std::size_t>(n) + i] = at;
    list[2 * static_cast<std::size_t>(n) + i] = static_cast<std::uint64_t>(me) * bytes;
    at += bytes;
  }
  for (std::size_t i = 0; i < most; ++i)
    mine[i] = mark(me, static_cast<int>(i));
  store(source, mine);
  store(lists, list);
  shmemx_alltoallvmem_on_stream(SHMEM_TEAM_WORLD, dest, source, lists, lists + n, lists + 2 * n,
                                stream);
  const Words got = load(dest, most);
  const int first = me * (me + 1) / 2; // of my words in everybody's source
  bool right = true;
  for (int from = 0; from < n; ++from)
    for (int i = 0; i <= me; ++i)
      right = right && got[static_cast<std::size_t>(from * (me + 1) + i)] == mark(from, first + i);
  expect(right, "alltoallv");
  for (std::uint64_t* block : {lists, dest, source})
    shmemx_gpu_free(block);
}

void test_sums_in_a_graph() {
  const auto pes = static_cast<std::size_t>(n);
  std::uint64_t *source = symmetric(pes), *sums = symmetric(pes), *part = symmetric(1);
  Words mine(pes);
  for (int i = 0; i < n; ++i)
    mine[static_cast<std::size_t>(i)] = mark(me, i);
  store(source, mine);
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  shmemx_reduce_on_stream(SHMEM_TEAM_WORLD, sums, source, pes, SHMEMX_INT64, SHMEMX_SUM, stream);
  shmemx_reducescatter_on_stream(SHMEM_TEAM_WORLD, part, source, 1, SHMEMX_INT64, SHMEMX_MAX,
                                 stream);
  shmemx_barrier_on_stream(SHMEM_TEAM_WORLD, stream);
  require(cudaStreamEndCapture(stream, &graph));
  require(cudaGraphInstantiate(&ready, graph, 0));
  for (int round = 0; round < 3; ++round)
    require(cudaGraphLaunch(ready, stream));
  std::uint64_t sum = 0;
  for (int pe = 0; pe < n; ++pe)
    sum += mark(pe, n - 1);
  expect(load(sums, pes)[pes - 1] == sum, "a sum in a graph");
  expect(load(part, 1)[0] == mark(n - 1, me), "a largest number in a graph");
  require(cudaGraphExecDestroy(ready));
  require(cudaGraphDestroy(graph));
  shmem_barrier_all();
  for (std::uint64_t* block : {part, sums, source})
    shmemx_gpu_free(block);
}

/// Types and operators beyond those of graphs: numbers of 1, 2 and 4 bytes, and of bits.
void test_numbers_and_bits() {
  constexpr std::size_t count = 24;
  std::uint64_t *source = symmetric(count), *dest = symmetric(count);
  store(source, Words(count, mark(me, 3)));
  const auto reduced = [&](shmemx_type_t type, std::size_t numbers, shmemx_op_t op) {
    shmemx_reduce_on_stream(SHMEM_TEAM_WORLD, dest, source, numbers, type, op, stream);
    return load(dest, count);
  };
  std::uint64_t all = ~std::uint64_t{0}, any = 0, odd = 0, sums = 0;
  for (int pe = 0; pe < n; ++pe) {
    const std::uint64_t word = mark(pe, 3);
    all &= word;
    any |= word;
    odd ^= word;
    std::uint64_t bytes = 0;
    for (int byte = 0; byte < 64; byte += 8)
      bytes |= (((sums >> byte) + (word >> byte)) & 0xff) << byte;
    sums = bytes;
  }
  expect(reduced(SHMEMX_UINT64, count, SHMEMX_AND) == Words(count, all), "bits of all PEs");
  expect(reduced(SHMEMX_UINT16, 4 * count, SHMEMX_OR) == Words(count, any), "bits of any PE");
  expect(reduced(SHMEMX_INT32, 2 * count, SHMEMX_XOR) == Words(count, odd), "odd bits");
  expect(reduced(SHMEMX_UINT8, 8 * count, SHMEMX_SUM) == Words(count, sums), "sums of bytes");
  expect(reduced(SHMEMX_INT8, 8 * count, SHMEMX_SUM) == Words(count, sums), "the same with signs");
  shmem_barrier_all();
  for (std::uint64_t* block : {dest, source})
    shmemx_gpu_free(block);
}

void test_the_host_reaches_it() {
  std::uint64_t* words = symmetric(2);
  const int next = (me + 1) % n, previous = (me + n - 1) % n;
  const std::uint64_t payload = mark(me, 5);
  shmem_putmem_signal(words, &payload, 8, words + 1, 9, SHMEM_SIGNAL_SET, next);
  shmem_barrier_all();
  expect(load(words, 2) == Words{mark(previous, 5), 9}, "a put of the host");
  shmem_barrier_all();
  auto* theirs = static_cast<std::uint64_t*>(shmemx_gpu_ptr(words, next));
  expect(theirs != nullptr, "a peer's memory");
  if (theirs)
    store(theirs, {mark(me, 6)});
  shmem_barrier_all();
  expect(load(words, 1)[0] == mark(previous, 6), "a copy into a peer's memory");
  shmemx_gpu_free(words);
}

__global__ void store_marks(std::uint64_t* to, int from, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    to[i] = 1000u * static_cast<unsigned>(from + 1) + static_cast<unsigned>(i);
}

shmemx_buffer_t name_of_previous; // symmetric

/// Memory of cudaMalloc that a kernel of another PE stores into.
void test_registered_memory() {
  constexpr int count = 500;
  std::uint64_t* mine = nullptr;
  shmemx_buffer_t name;
  require(cudaMalloc(&mine, count * 8));
  expect(shmemx_buffer_register(mine, count * 8) == 0, "a registration");
  expect(shmemx_buffer_name(mine, &name) == 0, "a buffer's name");
  const int next = (me + 1) % n;
  shmem_putmem(&name_of_previous, &name, sizeof name, next);
  shmem_barrier_all();
  auto* theirs = static_cast<std::uint64_t*>(shmemx_buffer_hold(&name_of_previous));
  expect(theirs != nullptr, "a buffer that is held");
  if (theirs) {
    store_marks<<<1, 128, 0, stream>>>(theirs, me, count);
    require(cudaGetLastError());
  }
  shmemx_gpu_wait(stream);
  shmem_barrier_all();
  expect(load(mine, count)[count - 1] == mark(next, count - 1), "what a peer's kernel stored");
  expect(theirs == nullptr || shmemx_buffer_let_go(theirs) == 0, "letting go");
  expect(shmemx_buffer_unregister(mine) == 0, "the end of a registration");
  require(cudaFree(mine));
}

void be_late() {
  std::uint64_t* word = symmetric(1);
  if (me == 0) {
    wait_for_one<<<1, 1, 0, stream>>>(shmemx_gpu_job(), word);
    require(cudaGetLastError());
    cudaStreamSynchronize(stream);
  }
  for (;;)
    pause();
}

} // namespace

int main(int argc, char** argv) {
  shmemx_gpu_init(nullptr);
  me = shmem_my_pe();
  n = shmem_n_pes();
  stream = shmemx_gpu_stream();
  const char* const mode = argc > 1 ? argv[1] : "";
  if (std::strcmp(mode, "late") == 0)
    be_late();
  int device_of_runtime = -1;
  require(cudaGetDevice(&device_of_runtime));
  expect(device_of_runtime == shmemx_gpu_device(), "the thread's current device");
  test_a_constant_job();
  test_a_team();
  test_moving_on_a_stream();
  test_lists_on_a_stream();
  test_sums_in_a_graph();
  test_numbers_and_bits();
  test_the_host_reaches_it();
  test_registered_memory();
  if (mistakes == 0)
    std::printf("PE %d: well\n", me);
  if (std::strcmp(mode, "leave") != 0)
    shmem_finalize();
  return mistakes == 0 ? 0 : 1;
}
