// Kernels that post to an HCA's QPs, on a heap of GPU memory that CPUs cannot access: loads and
// stores within a node, ibgda between nodes, in one job. Threads take the kernels' place, and the
// HCA is emulated.
#if __has_include(<rdma/fabric.h>)

#include "tests/unit/kernels/device_network/kernel_threads.h"
#include "tests/unit/runtime/gpu/gpu_job.h"

namespace shmemctl::test {
namespace {

constexpr std::uint64_t count = 5000; ///< words: more than fits inline in a WQE
constexpr std::uint64_t rounds = 10;

// A PE's path to each other one, as text.
constexpr std::uint64_t data = 0, signal = count, counter = count + 1, met = count + 2,
                        row = count + 3;

class Kernels {
public:
  explicit Kernels(Runtime& runtime)
      : runtime_(runtime), gpu_(*runtime.gpu()),
        words_(static_cast<std::uint64_t*>(
            gpu_.allocate((2 * row * static_cast<std::uint64_t>(runtime.n_pes())) * 8))) {}

  /// Of a word at the same offset on all PEs.
  ThreadQueue::Address place(std::uint64_t word) const {
    return {region::gpu_heap, static_cast<std::uint64_t>(
                                  reinterpret_cast<std::byte*>(words_ + word) - gpu_.job().heap)};
  }
  std::uint64_t* own(std::uint64_t word) const { return words_ + word; }
  std::uint64_t row_of(int pe) const { return row * static_cast<std::uint64_t>(pe); }
  /// After the rows that others write: what is sent, and what is fetched.
  std::uint64_t mine(int peer) const { return row_of(runtime_.n_pes() + peer); }

  /// Puts with a signal, in turns, and as much back; every word is checked.
  void exchange_with(const DeviceJob& job, int peer) {
    const int me = runtime_.pe();
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      fill(mine(peer), value_of(me, round));
      ThreadWait wait;
      ThreadQueue queue(job.network, static_cast<std::uint32_t>(peer), 0, 0, wait);
      // From the heap's own memory, by its lkey; the signal is written after it.
      expect(queue.put_signal(place(row_of(me) + data), own(mine(peer)), count * 8,
                              place(row_of(me) + signal), round, false, false),
             "a put with its signal");
      await_word(row_of(peer) + signal, round);
      expect_words(row_of(peer) + data, value_of(peer, round), "what came before its signal");
      expect(queue.atomic(place(row_of(me) + counter), AtomicOp::add, 8, 2, 0, nullptr),
             "an addition");
      std::uint64_t old = 0;
      expect(queue.atomic(place(row_of(me) + counter), AtomicOp::add, 8, 1, 0, &old) &&
                 old == 3 * round - 1,
             "what it was");
      // Back into the heap: blocking, and with a quiet.
      fill(mine(peer), 0);
      expect(queue.get(own(mine(peer)), place(row_of(me) + data), count * 8, round % 2 == 0) &&
                 queue.quiet(),
             "a get");
      expect_words(mine(peer), value_of(me, round), "what was put there");
      meet(job, peer, round);
    }
  }
  std::uint64_t word(std::uint64_t at) const { return word_at(gpu_, words_ + at); }

private:
  /// No PE begins a round before the other one has checked the previous one.
  void meet(const DeviceJob& job, int peer, std::uint64_t round) {
    ThreadWait wait;
    ThreadQueue queue(job.network, static_cast<std::uint32_t>(peer), 1, 0, wait);
    expect(queue.put_value(place(row_of(runtime_.pe()) + met), round, 8), "a word");
    await_word(row_of(peer) + met, round);
  }

  static std::uint64_t value_of(int pe, std::uint64_t round) {
    return round * 100 + static_cast<std::uint64_t>(pe);
  }
  void fill(std::uint64_t at, std::uint64_t value) {
    const std::vector<std::uint64_t> words(count, value);
    gpu_.copy(words_ + at, words.data(), count * 8);
  }
  void await_word(std::uint64_t at, std::uint64_t value) const {
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while (word(at) != value) {
      expect(!deadline.passed(), "a word in time");
      std::this_thread::yield();
    }
  }
  void expect_words(std::uint64_t at, std::uint64_t value, const std::string& what) const {
    expect(words_at(gpu_, words_ + at, count) == std::vector<std::uint64_t>(count, value), what);
  }

  Runtime& runtime_;
  PeGpu& gpu_;
  std::uint64_t* words_;
};

ForkJob two_nodes(int n_pes, const Environment& more) {
  ForkJob job = gpu_job(
      n_pes,
      [](Runtime& runtime) -> std::string {
        PeGpu& gpu = *runtime.gpu();
        Kernels kernels(runtime);
        const DeviceJob device_job = gpu.job();
        runtime.collectives().barrier(team_world);
        std::string text;
        const int n = runtime.n_pes();
        for (int peer = 0; peer < n; ++peer) {
          const KernelPath& way = gpu.paths_by_pe()[static_cast<std::size_t>(peer)];
          text += " " + std::to_string(static_cast<int>(way.path)) + ":" + way.reason + ";";
        }
        // Pairs in an order in which both ends reach each other.
        for (int sum = 1; sum < 2 * n; ++sum) {
          const int peer = sum - runtime.pe();
          if (peer >= 0 && peer < n && peer != runtime.pe() &&
              gpu.paths_by_pe()[static_cast<std::size_t>(peer)].path == DevicePath::ibgda)
            kernels.exchange_with(device_job, peer);
        }
        gpu.check();
        runtime.collectives().barrier(team_world);
        for (int peer = 0; peer < n; ++peer)
          if (gpu.paths_by_pe()[static_cast<std::size_t>(peer)].path == DevicePath::ibgda)
            expect(kernels.word(kernels.row_of(peer) + counter) == 3 * rounds, "all additions");
        runtime.collectives().barrier(team_world);
        return text;
      },
      {{"SHMEMCTL_HEAP", "vmm"},
       {"SHMEMCTL_MLX5_DEVICE", "emulated"},
       {"SHMEMCTL_EMULATED_HCA_OVER", "libfabric"},
       {"SHMEMCTL_LIBFABRIC_PROVIDER", "tcp"},
       {"SHMEMCTL_TRANSPORT", "shm,ibgda"}});
  job.n_nodes = 2;
  for (const auto& [name, value] : more)
    job.environment[name] = value;
  return job;
}

class IbgdaOnGpuMemory : public ::testing::Test {
protected:
  /// Number of peers by path, and a text of all reasons.
  void expect_paths(const ForkJob& job, int load_store, int ibgda, int proxy,
                    const std::vector<std::string>& words) {
    for (const PeResult& result : run_fork_job(job)) {
      ASSERT_EQ(result.exit_code, 0) << result.text;
      const auto count_of = [&](DevicePath path) {
        const std::string mark = " " + std::to_string(static_cast<int>(path)) + ":";
        int found = 0;
        for (std::size_t at = 0; (at = result.text.find(mark, at)) != std::string::npos; ++at)
          ++found;
        return found;
      };
      EXPECT_EQ(count_of(DevicePath::load_store), load_store) << result.text;
      EXPECT_EQ(count_of(DevicePath::ibgda), ibgda) << result.text;
      EXPECT_EQ(count_of(DevicePath::proxy), proxy) << result.text;
      for (const std::string& each : words)
        EXPECT_NE(result.text.find(each), std::string::npos) << each << "\nin: " << result.text;
    }
  }
  SetVariable strict_{"FAKE_CUDA_STRICT", "vmm"};
};

TEST_F(IbgdaOnGpuMemory, LoadsAndStoresWithinANodeAndQueuesBetweenNodes) {
  ForkJob job = two_nodes(4, {{"SHMEMCTL_IB_ENABLE_IBGDA", "1"}});
  job.after = [] { return held_by_fake(); };
  expect_paths(job, 2, 2, 0, {"the emulated HCA stages GPU memory", nothing_held});
}

TEST_F(IbgdaOnGpuMemory, QueuesToAllIfTheyAreAskedFor) {
  expect_paths(two_nodes(2, {{"SHMEMCTL_DEVICE_PATH", "ibgda"}}), 1, 1, 0,
               {"emulated HCA over libfabric"});
}

TEST_F(IbgdaOnGpuMemory, WithoutTheTransportItIsTheProxy) {
  expect_paths(
      two_nodes(2, {{"SHMEMCTL_IB_ENABLE_IBGDA", "1"}, {"SHMEMCTL_TRANSPORT", "shm,libfabric"}}), 1,
      0, 1, {"but ibgda is not among the job's transports: proxy over staged"});
}

/// Its staged messages would wait for itself.
TEST_F(IbgdaOnGpuMemory, EmulatedHcasWithoutAnotherPathAreReported) {
  ForkJob job = two_nodes(2, {{"SHMEMCTL_DEVICE_PATH", "ibgda"},
                              {"SHMEMCTL_TRANSPORT", "ibgda"},
                              {"SHMEMCTL_EMULATED_HCA_OVER", "shm"}});
  job.n_nodes = 1;
  expect_paths(
      job, 1, 0, 1,
      {"but PE 0: its HCA is emulated, stages GPU memory, and cannot do that by itself; set "
       "SHMEMCTL_TRANSPORT=shm,ibgda: proxy over staged"});
}

} // namespace
} // namespace shmemctl::test

#endif
