// GPUDirect RDMA in whole jobs: ibrc over a fake libibverbs between processes, whose NIC accesses
// the fake GPUs' memory by dma-buf, and CPUs do not.
#if __has_include(<infiniband/verbs.h>)

#include <filesystem>
#include <unistd.h>

#include "tests/unit/runtime/gpu/gpu_job.h"

namespace shmemctl::test {
namespace {

constexpr std::size_t count = 5000; ///< words: more than fits inline, or is copied

const std::string& reason_of(Runtime& runtime) {
  return runtime.gpu()->paths_by_pe()[static_cast<std::size_t>(1 - runtime.pe())].reason;
}

int calls(const char* name) {
  return of_fake<int(const char*)>("fake_cuda_calls")(name);
}

/// Files of exported memory that this process holds open.
int open_dma_bufs() {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    found += std::filesystem::read_symlink(entry.path(), gone).string().find("fake-dma-buf") !=
             std::string::npos;
  }
  return found;
}

/// Data there and back by the host's operations, from host memory and from the GPU's.
void move_data(Runtime& runtime, std::uint64_t* words) {
  PeGpu& gpu = *runtime.gpu();
  Rma& rma = runtime.rma();
  const int peer = 1 - runtime.pe();
  const auto tag = static_cast<std::uint64_t>(runtime.pe() + 1);
  std::vector<std::uint64_t> mine(count, tag);
  rma.put(words, mine.data(), count * 8, peer);                             // from the host
  rma.put(words + count, mine.data(), 8, peer);                             // inline
  gpu.copy(words + 2 * count, mine.data(), count * 8);                      // one's own GPU
  rma.put(words + 3 * count, words + 2 * count, count * 8, peer, 0, false); // from the own GPU
  rma.put(words + 4 * count, words + 2 * count, 16, peer);                  // short transfers, too
  rma.put_signal(words + 5 * count, words + 2 * count, 8, words + 6 * count, 3, SignalOp::set,
                 peer);
  rma.put_signal(words + 5 * count + 1, words + 2 * count, 8, words + 6 * count + 1, 4,
                 SignalOp::add, peer);
  rma.fence();
  rma.post_atomic(words + 6 * count, {AtomicOp::add, 8, 10}, peer);
  rma.quiet();
  runtime.collectives().barrier(team_world);
  const std::uint64_t theirs = 3 - tag;
  const std::vector<std::uint64_t> whole(count, theirs);
  expect(words_at(gpu, words, count) == whole, "what came from the peer's host");
  expect(word_at(gpu, words + count) == theirs, "a word");
  expect(words_at(gpu, words + 3 * count, count) == whole, "what came from the peer's GPU");
  expect(word_at(gpu, words + 4 * count + 1) == theirs, "two words");
  expect(word_at(gpu, words + 5 * count) == theirs, "a payload");
  expect(word_at(gpu, words + 5 * count + 1) == theirs, "another one");
  expect(word_at(gpu, words + 6 * count) == 13, "the signal, and what was added behind it");
  expect(word_at(gpu, words + 6 * count + 1) == 4, "the signal that was added");
  std::vector<std::uint64_t> back(count);
  rma.get(back.data(), words, count * 8, peer); // to the host
  expect(back == mine, "what was put there");
  rma.get(words + 7 * count, words, count * 8, peer); // into the GPU
  expect(words_at(gpu, words + 7 * count, count) == mine, "the same");
  expect(rma.atomic(words + 6 * count, {AtomicOp::fetch, 8}, peer) == 13, "fetch");
  runtime.collectives().barrier(team_world);
}

Environment over_fake_nic(const Environment& more = {}) {
  Environment environment = {{"SHMEMCTL_TRANSPORT", "shm,ibrc"},
                             {"SHMEMCTL_VERBS_LIBRARY", SHMEMCTL_FAKE_VERBS}};
  for (const auto& [name, value] : more)
    environment[name] = value;
  return environment;
}

/// Two PEs on two nodes; each returns why and how its kernels reach the other one.
ForkJob two_nodes(const Environment& more = {}) {
  ForkJob job = gpu_job(
      2,
      [](Runtime& runtime) -> std::string {
        auto* words = static_cast<std::uint64_t*>(runtime.gpu()->allocate(8 * count * 8));
        move_data(runtime, words);
        runtime.gpu()->free(words);
        return reason_of(runtime);
      },
      over_fake_nic(more));
  job.n_nodes = 2;
  job.environment["SHMEMCTL_HEAP"] = "vmm";
  return job;
}

class GpuDirectJobs : public ::testing::Test {
protected:
  /// All PEs succeed, and return `words`.
  void expect_text(const ForkJob& job, const std::string& words) {
    for (const PeResult& result : run_fork_job(job)) {
      EXPECT_EQ(result.exit_code, 0) << result.text;
      EXPECT_NE(result.text.find(words), std::string::npos) << words << "\nin: " << result.text;
    }
  }
  SetVariable strict_{"FAKE_CUDA_STRICT", "1"};
};

constexpr const char* direct_text = "proxy over GPUDirect RDMA by dma-buf over ibrc";

TEST_F(GpuDirectJobs, NicsReadAndWriteTheHeap) {
  for (const char* heap : {"vmm", "ipc"}) {
    ForkJob job = two_nodes();
    job.environment["SHMEMCTL_HEAP"] = heap;
    job.after = [] { return held_by_fake(); };
    expect_text(job, direct_text);
    expect_text(job, nothing_held);
  }
}

TEST_F(GpuDirectJobs, MappedPesUseTheNicOnRequest) {
  ForkJob job = two_nodes({{"SHMEMCTL_DEVICE_PATH", "proxy"}});
  job.n_nodes = 1;
  expect_text(job, direct_text);
}

TEST_F(GpuDirectJobs, HeapsGrowAndNoFileStaysOpen) {
  ForkJob job = two_nodes();
  job.body = [](Runtime& runtime) -> std::string {
    for (int step = 1; step <= 3; ++step) {
      auto* words = static_cast<std::uint64_t*>(runtime.gpu()->allocate(std::size_t{10} << 20));
      move_data(runtime, words + (std::size_t{6} << 17)); // across the border of chunks
    }
    expect(calls("cuMemGetHandleForAddressRange") >= 4, "exports");
    expect(open_dma_bufs() == 0, "no open file");
    return reason_of(runtime);
  };
  expect_text(job, direct_text);
}

TEST_F(GpuDirectJobs, MemoryThatNoNicReachesIsStaged) {
  ForkJob job = two_nodes();
  job.body = [](Runtime& runtime) -> std::string {
    PeGpu& gpu = *runtime.gpu();
    auto* words = static_cast<std::uint64_t*>(gpu.allocate(4096));
    auto* other =
        static_cast<std::uint64_t*>(of_fake<void*(std::size_t)>("fake_cuda_allocate")(64));
    const auto tag = static_cast<std::uint64_t>(runtime.pe() + 1);
    gpu.copy(other, &tag, 8);
    runtime.rma().put(words, other, 8, 1 - runtime.pe());
    runtime.rma().quiet();
    runtime.collectives().barrier(team_world);
    expect(word_at(gpu, words) == 3 - tag, "what the peer has put");
    runtime.rma().get(other + 1, words, 8, 1 - runtime.pe());
    expect(word_at(gpu, other + 1) == tag, "what was put there");
    runtime.collectives().barrier(team_world);
    return reason_of(runtime);
  };
  expect_text(job, direct_text);
}

/// A CPU that has polled a NIC's completion must flush before it signals a kernel.
TEST_F(GpuDirectJobs, FlushesNicWritesBeforeASignalFromTheCpu) {
  ForkJob job = two_nodes();
  job.body = [](Runtime& runtime) -> std::string {
    PeGpu& gpu = *runtime.gpu();
    const auto flushes = [] { return calls("cuFlushGPUDirectRDMAWrites"); };
    Rma& rma = runtime.rma();
    const int peer = 1 - runtime.pe();
    auto* words = static_cast<std::uint64_t*>(gpu.allocate(4096));
    std::string seen;
    const auto step = [&](const char* name, const std::function<void()>& action) {
      runtime.collectives().barrier(team_world);
      const int before = flushes();
      runtime.collectives().barrier(team_world);
      action();
      runtime.collectives().barrier(team_world);
      seen += std::string(" ") + name + " " + std::to_string(flushes() - before);
    };
    const std::uint64_t one = 1;
    step("put", [&] {
      rma.put(words, &one, 8, peer);
      rma.put_signal(words, &one, 8, words + 1, 1, SignalOp::set, peer);
      rma.quiet();
    });
    step("get", [&] { rma.get(words + 2, words, 8, peer); });
    step("gets", [&] {
      rma.get(words + 2, words, 8, peer, 0, false);
      rma.get(words + 3, words, 8, peer, 0, false);
      rma.quiet();
    });
    step("agent", [&] { // the peer's message is carried out here
      rma.atomic(words + 4, {AtomicOp::add, 8, 1}, peer);
    });
    gpu.free(words);
    return seen + ";";
  };
  expect_text(job, " put 0 get 1 gets 1 agent 1;");
  const SetVariable in_order("FAKE_CUDA_RDMA_ORDER", "200");
  expect_text(job, " put 0 get 0 gets 0 agent 0;");
}

// Reasons for which a job stages its transfers: the data arrives all the same.

TEST_F(GpuDirectJobs, OffIsStaged) {
  expect_text(two_nodes({{"SHMEMCTL_GPUDIRECT", "off"}}),
              "proxy over staged: SHMEMCTL_GPUDIRECT=off");
}

#if __has_include(<rdma/fabric.h>)
TEST_F(GpuDirectJobs, AProviderWithoutNicsForItIsStaged) {
  expect_text(
      two_nodes({{"SHMEMCTL_TRANSPORT", "shm,libfabric"}, {"SHMEMCTL_LIBFABRIC_PROVIDER", "tcp"}}),
      "proxy over staged: libfabric: PE 0: libfabric's tcp;ofi_rxm reaches memory of the "
      "host only (no access on 2 of 2 PEs)");
}
#endif

TEST_F(GpuDirectJobs, OneRefusedRegistrationIsEnoughForAll) {
  ForkJob job = two_nodes();
  job.of_pe = [](int pe, Environment&) {
    if (pe == 1)
      ::setenv("FAKE_VERBS_REFUSE", "1", 1);
  };
  expect_text(job, "proxy over staged: ibrc: PE 1: fake0: peer memory: nvidia-peermem is not "
                   "loaded; dma-buf: Operation not supported");
}

TEST_F(GpuDirectJobs, LibrariesAndDriversMayBeTooOld) {
  expect_text(
      two_nodes({{"SHMEMCTL_VERBS_LIBRARY", SHMEMCTL_FAKE_OLD_VERBS}}),
      "staged: ibrc: PE 0: fake0: dma-buf: libibverbs has no ibv_reg_dmabuf_mr; peer memory: "
      "nvidia-peermem is not loaded (no access on 2 of 2 PEs)");
  const SetVariable lacks("FAKE_CUDA_LACKS", "124"); // DMA_BUF_SUPPORTED
  expect_text(two_nodes(), "staged: ibrc: PE 0: fake0: dma-buf: GPU 0 has no DMA_BUF_SUPPORTED");
}

TEST_F(GpuDirectJobs, AGpuThatReordersWritesIsStaged) {
  const SetVariable nobody("FAKE_CUDA_RDMA_ORDER", "0");
  expect_text(two_nodes(), "staged: ibrc: PE 0: GPU 0 does not keep the order of a NIC's writes");
}

TEST_F(GpuDirectJobs, NamesADriverThatRefusesARange) {
  const SetVariable fail("FAKE_CUDA_FAIL", "cuMemGetHandleForAddressRange:1:801");
  expect_text(two_nodes(), "dma-buf: cuMemGetHandleForAddressRange: CUDA_ERROR_");
}

// Reasons that end a job.

TEST_F(GpuDirectJobs, ARequestedPathIsRequired) {
  ForkJob job = two_nodes({{"SHMEMCTL_GPUDIRECT", "dmabuf"}});
  expect_text(job, direct_text);
  job.of_pe = [](int pe, Environment&) {
    if (pe == 1)
      ::setenv("FAKE_VERBS_REFUSE", "1", 1);
  };
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    for (const char* words : {"SHMEMCTL_GPUDIRECT=dmabuf", "PE 1: fake0", "Operation not supported",
                              "peer memory: GPUDIRECT=dmabuf is set"})
      EXPECT_NE(result.text.find(words), std::string::npos) << words << ": " << result.text;
  }
}

TEST_F(GpuDirectJobs, PeerMemoryAloneNeedsItsModule) {
  for (const PeResult& result : run_fork_job(two_nodes({{"SHMEMCTL_GPUDIRECT", "peermem"}}))) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    EXPECT_NE(result.text.find("dma-buf: GPUDIRECT=peermem is set; peer memory: nvidia-peermem is "
                               "not loaded"),
              std::string::npos)
        << result.text;
  }
}

TEST_F(GpuDirectJobs, AGrownHeapThatCannotBeRegisteredIsOneError) {
  ForkJob job = two_nodes();
  job.of_pe = [](int pe, Environment&) {
    if (pe == 1)
      ::setenv("FAKE_VERBS_REFUSE", "3", 1); // the trial, the cells, then the heap
  };
  job.after = [] { return " held: " + held_by_fake(); };
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    for (const char* words : {"4M of the GPU's heap (", "cannot register", "PE 1", "fake0",
                              "Operation not supported", nothing_held})
      EXPECT_NE(result.text.find(words), std::string::npos) << words << ": " << result.text;
  }
}

} // namespace
} // namespace shmemctl::test

#endif
