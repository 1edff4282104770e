// Entries in memory of the host that one block writes and another one rings: a processor that reads
// them in the HCA's place finds them whole.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "src/base/deadline.h"
#include "tests/gpu/device_world.h"
#include "tests/gpu/queue_memory.h"
#include "tests/gpu/share.h"
#include "transports/mlx5/host_memory.h"
#include "transports/mlx5/qp_layout.h"

namespace shmemctl::test {
namespace {

constexpr double wait_s = 20;

/// A queue as kernels have it: its words in the GPU's memory, everything else in the host's.
class MappedQueue {
public:
  MappedQueue() : words_(1) {
    options_.wqebbs = 16;
    options_.signal_every = 4;
    options_.completions = mlx5::CqMode::collapsed;
    const mlx5::QpLayout layout = mlx5::qp_layout(options_);
    require_cuda(cudaHostAlloc(&memory_, layout.size_bytes, cudaHostAllocMapped), "queue");
    std::memset(memory_, 0, layout.size_bytes);
    view_ = mlx5::queue_view(options_, layout, memory_);
    mlx5::prepare_completions(view_, layout);
    view_.qpn = 0x1234;
    view_.words = words_.data();
  }
  ~MappedQueue() { cudaFreeHost(memory_); }
  MappedQueue(const MappedQueue&) = delete;
  MappedQueue& operator=(const MappedQueue&) = delete;
  const mlx5::QpView& view() const { return view_; }

private:
  mlx5::QpOptions options_;
  void* memory_ = nullptr;
  DeviceArray<mlx5::QpState> words_;
  mlx5::QpView view_{};
};

/// What stands in the HCA's place: register, then record, then entries.
class Reader {
public:
  explicit Reader(const mlx5::QpView& view) : view_(view) {}

  std::uint64_t done() const { return position_; }
  std::uint64_t wrong_words() const { return wrong_; }
  /// One look; true if there was something.
  bool look() {
    const std::uint64_t doorbell = mlx5::HostMemory::load_acquire(view_.doorbell);
    if (doorbell == seen_)
      return false;
    seen_ = doorbell;
    const std::uint32_t record =
        mlx5::to_wire(std::atomic_ref(*view_.send_record).load(std::memory_order_acquire));
    for (; static_cast<std::uint16_t>(record - position_) != 0; ++position_)
      for (unsigned word = 0; word < mlx5::wqebb_words; ++word) {
        const std::uint64_t at = position_ % (1u << view_.wqebbs_log2) * mlx5::wqebb_words + word;
        wrong_ +=
            mlx5::HostMemory::load(view_.wqes + at) == queue_memory_word(position_, word) ? 0 : 1;
      }
    mlx5::HostMemory::store_release(
        view_.completions + mlx5::cqe_last_word,
        mlx5::encode_tail({0, view_.qpn, static_cast<std::uint16_t>(position_ - 1), 0, 0}));
    return true;
  }

private:
  const mlx5::QpView view_;
  std::uint64_t seen_ = 0, position_ = 0, wrong_ = 0;
};

/// In a process of its own, since CUDA does not survive the forks of the tests beside this one.
void ring_for_entries_of_another_block() {
  const std::uint64_t rounds = share_of(messages_of(1'000'000));
  const MappedQueue queue;
  std::uint64_t* gave_up = nullptr;
  require_cuda(cudaHostAlloc(&gave_up, sizeof *gave_up, cudaHostAllocMapped), "flag");
  *gave_up = 0;
  launch_queue_memory(nullptr, queue.view(), rounds, static_cast<std::uint64_t>(60 * wait_s * 1e9),
                      gave_up);
  require_cuda(cudaGetLastError(), "launch");
  Reader reader(queue.view());
  Deadline until = Deadline::after(std::chrono::duration<double>(wait_s));
  while (reader.done() < 2 * rounds && !until.passed())
    if (reader.look())
      until = Deadline::after(std::chrono::duration<double>(wait_s));
  const std::uint64_t done = reader.done();
  std::atomic_ref(*gave_up).store(done < 2 * rounds ? 1 : 0);
  require_cuda(cudaDeviceSynchronize(), "kernel");
  require(done == 2 * rounds, "the kernel has rung for " + std::to_string(2 * rounds) +
                                  " entries, not " + std::to_string(done));
  require(reader.wrong_words() == 0,
          "no word is wrong, not " + std::to_string(reader.wrong_words()));
  require(*gave_up == 0, "the kernel has not given up");
  cudaFreeHost(gave_up);
}

TEST(QueueMemory, AWqeOfOneBlockIsCompleteWhenAnotherBlockRings) {
  ForkedPes child(1, [](int) {
    if (count_gpus() > 0)
      ring_for_entries_of_another_block();
    else
      throw std::runtime_error("no GPU");
  });
  const std::string end = child.ends().front();
  if (end == "no GPU")
    GTEST_SKIP() << end;
  EXPECT_EQ(end, "");
}

} // namespace
} // namespace shmemctl::test
