// The network of kernels of a whole job: threads take the kernels' place, and a CPU can access the
// fake GPUs' memory.
#include <cstring>

#include "tests/unit/kernels/device_network/kernel_threads.h"
#include "tests/unit/runtime/gpu/gpu_job.h"

namespace shmemctl::test {
namespace {

constexpr unsigned n_threads = 3;
constexpr std::uint64_t rounds = 50;

ProxyRequest request_to(ProxyOp op, int pe, std::uint64_t offset_bytes) {
  ProxyRequest request;
  request.op = op;
  request.region = region::gpu_heap;
  request.pe = pe;
  request.offset_bytes = offset_bytes;
  request.size_bytes = 8;
  return request;
}

/// Adds to the peer's word at `offset_bytes`, and reads the result of the previous additions.
void add_by_proxy(const DeviceJob& job, int peer, std::uint64_t offset_bytes,
                  std::uint32_t number) {
  ThreadWait wait;
  ThreadProxy proxy(job.network, number, wait);
  std::uint64_t value = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    ProxyRequest add = request_to(ProxyOp::atomic, peer, offset_bytes);
    add.detail = static_cast<std::uint8_t>(AtomicOp::add);
    add.operand = 1;
    expect(proxy.post(add), "an addition");
    ProxyRequest fetch = request_to(ProxyOp::atomic, peer, offset_bytes);
    fetch.detail = static_cast<std::uint8_t>(AtomicOp::fetch);
    expect(proxy.fence() && proxy.ask(fetch, value) && value > round, "what it has left");
  }
  expect(proxy.quiet(), "quiet");
}

void add_by_queue(const DeviceJob& job, int peer, std::uint64_t offset_bytes,
                  std::uint32_t number) {
  ThreadWait wait;
  const auto to = static_cast<std::uint32_t>(peer);
  ThreadQueue queue(job.network, to, device::atomic_qp_of(job.network, to, number), number, wait);
  std::uint64_t value = 0;
  const ThreadQueue::Address place{region::gpu_heap, offset_bytes};
  for (std::uint64_t round = 0; round < rounds; ++round)
    expect(queue.atomic(place, AtomicOp::add, 8, 1, 0, nullptr) &&
               queue.get_value(place, 8, value) && value > round,
           "an addition");
  expect(queue.quiet(), "quiet");
}

#if __has_include(<infiniband/verbs.h>)
constexpr const char* fake_verbs = SHMEMCTL_FAKE_VERBS;
#else
constexpr const char* fake_verbs = "none";
#endif

struct Way {
  const char* name;
  const char* transport;
  const char* heap;
  const char* wanted; ///< DEVICE_PATH
  DevicePath path;
  int n_nodes;
};

class NetworkOfKernels : public ::testing::TestWithParam<Way> {};

TEST_P(NetworkOfKernels, ReachesTheHeapOfThePeer) {
  const Way way = GetParam();
  ForkJob whole = gpu_job(
      2,
      [way](Runtime& runtime) -> std::string {
        PeGpu& gpu = *runtime.gpu();
        const int peer = 1 - runtime.pe();
        const KernelPath& chosen = gpu.paths_by_pe()[static_cast<std::size_t>(peer)];
        expect(chosen.path == way.path, chosen.reason);
        // Larger than a chunk: the heap grows after the network has started.
        auto* words = static_cast<std::uint64_t*>(gpu.allocate(std::size_t{10} << 20));
        const DeviceJob job = gpu.job();
        expect(job.network.path_of_pe[peer] == static_cast<std::uint8_t>(way.path), "the path");
        const std::uint64_t at = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(words) -
                                                            job.heap + (std::ptrdiff_t{9} << 20));
        std::atomic<int> failures{0};
        run_kernel(n_threads, [&](std::uint32_t number) {
          try {
            way.path == DevicePath::proxy ? add_by_proxy(job, peer, at, number)
                                          : add_by_queue(job, peer, at, number);
          } catch (const Error&) {
            ++failures;
          }
        });
        expect(failures == 0, "what the threads expected");
        gpu.check();
        runtime.collectives().barrier(team_world);
        expect(word_at(gpu, words + (std::size_t{9} << 17)) == n_threads * rounds, "the sum");
        // The host's own operations, there and back.
        std::vector<std::uint64_t> mine(100'000, 5 + static_cast<std::uint64_t>(runtime.pe()));
        Rma& rma = runtime.rma();
        rma.put(words, mine.data(), mine.size() * 8, peer, 0, false);
        rma.put_signal(words, nullptr, 0, words + mine.size(), 3, SignalOp::set, peer);
        rma.post_atomic(words + mine.size(), {AtomicOp::add, 8, 4}, peer);
        rma.quiet();
        runtime.collectives().barrier(team_world);
        mine.assign(mine.size(), 5 + static_cast<std::uint64_t>(peer));
        expect(words_at(gpu, words, mine.size()) == mine, "what the peer has put");
        expect(word_at(gpu, words + mine.size()) == 7, "the signal, and what was added");
        mine.assign(mine.size(), 0);
        rma.get(mine.data(), words, mine.size() * 8, peer);
        expect(mine == std::vector<std::uint64_t>(mine.size(),
                                                  5 + static_cast<std::uint64_t>(runtime.pe())),
               "what was put there");
        runtime.collectives().barrier(team_world);
        gpu.free(words);
        return {};
      },
      {{"SHMEMCTL_HEAP", way.heap},
       {"SHMEMCTL_DEVICE_PATH", way.wanted},
       {"SHMEMCTL_TRANSPORT", way.transport},
       {"SHMEMCTL_MLX5_DEVICE", "emulated"},
       {"SHMEMCTL_VERBS_LIBRARY", fake_verbs},
       {"SHMEMCTL_LIBFABRIC_PROVIDER", "tcp"}});
  whole.n_nodes = way.n_nodes;
  expect_all_well(run_fork_job(whole));
}

const auto name_of = [](const auto& tested) { return std::string(tested.param.name); };

INSTANTIATE_TEST_SUITE_P(
    OneNode, NetworkOfKernels,
    ::testing::Values(Way{"proxy_shm", "shm", "host", "proxy", DevicePath::proxy, 1},
                      Way{"ibgda", "shm,ibgda", "host", "ibgda", DevicePath::ibgda, 1},
                      Way{"ibgda_gpu_memory", "shm,ibgda", "vmm", "ibgda", DevicePath::ibgda, 1},
                      Way{"proxy_staged", "shm", "vmm", "proxy", DevicePath::proxy, 1}),
    name_of);

#if __has_include(<infiniband/verbs.h>)
INSTANTIATE_TEST_SUITE_P(
    GpuDirect, NetworkOfKernels,
    ::testing::Values(Way{"one_node", "shm,ibrc", "vmm", "proxy", DevicePath::proxy, 1},
                      Way{"two_nodes", "shm,ibrc", "vmm", "auto", DevicePath::proxy, 2}),
    name_of);
#endif

#if __has_include(<rdma/fabric.h>)
INSTANTIATE_TEST_SUITE_P(
    TwoNodes, NetworkOfKernels,
    ::testing::Values(Way{"proxy", "shm,libfabric", "host", "auto", DevicePath::proxy, 2},
                      Way{"proxy_staged", "shm,libfabric", "vmm", "auto", DevicePath::proxy, 2}),
    name_of);

TEST(NetworkOfGpuMemory, IsNotUsedIfLoadsAndStoresAreRequested) {
  ForkJob whole = gpu_job(
      2,
      [](Runtime& runtime) -> std::string {
        const KernelPath& way =
            runtime.gpu()->paths_by_pe()[static_cast<std::size_t>(1 - runtime.pe())];
        expect(way.path == DevicePath::none, "no path");
        expect(way.reason.find("SHMEMCTL_DEVICE_PATH=p2p") != std::string::npos, way.reason);
        return {};
      },
      {{"SHMEMCTL_HEAP", "vmm"},
       {"SHMEMCTL_DEVICE_PATH", "p2p"},
       {"SHMEMCTL_TRANSPORT", "shm,libfabric"},
       {"SHMEMCTL_LIBFABRIC_PROVIDER", "tcp"}});
  whole.n_nodes = 2;
  expect_all_well(run_fork_job(whole));
}
#endif

} // namespace
} // namespace shmemctl::test
