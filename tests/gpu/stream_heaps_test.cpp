// Operations on streams over each kind of heap: blocks that span steps of its growth, and a host
// that is never held up. Skipped, with the reason, where there is no GPU.
#include "kernels/on_stream.h"
#include "tests/gpu/on_gpus.h"
#include "tests/support/gpu_bodies.h"

#include <cuda_runtime.h>

namespace shmemctl::test {
namespace {

constexpr std::size_t words = 75001; // 600,008 bytes: what copy engines take

/// `words` words, of which the first 37,500 end where the heap ended before it grew. One of CUDA
/// IPC is there as a whole.
std::uint64_t* across_two_steps(PeGpu& gpu) {
  if (gpu.info().heap_kind == "ipc")
    return static_cast<std::uint64_t*>(gpu.allocate(words * 8));
  constexpr std::size_t block_bytes = std::size_t{6} << 20, before = 37500 * 8;
  for (;;) {
    const std::size_t end = gpu.job().heap_bytes;
    auto* const block = static_cast<std::byte*>(gpu.allocate(block_bytes));
    expect(block != nullptr, "a block that spans two steps of the heap's growth");
    const auto at = static_cast<std::size_t>(block - gpu.job().heap);
    if (at + before <= end && end + before + 8 <= at + block_bytes)
      return reinterpret_cast<std::uint64_t*>(gpu.job().heap + end - before);
  }
}

std::vector<std::uint64_t> row_of(int pe, std::uint64_t step) {
  std::vector<std::uint64_t> row(words);
  for (std::size_t i = 0; i < words; ++i)
    row[i] = (static_cast<std::uint64_t>(pe) + 1) * 1000000 * step + i;
  return row;
}

/// Two PEs.
class StreamPair {
public:
  explicit StreamPair(Runtime& runtime)
      : runtime_(runtime), gpu_(*runtime.gpu()), peer_(1 - runtime.pe()) {
    source_ = across_two_steps(gpu_);
    target_ = across_two_steps(gpu_);
    signal_ = static_cast<std::uint64_t*>(gpu_.allocate(64));
  }

  on_stream::Job job(const std::string& kind) const {
    on_stream::Job known(gpu_.job(), gpu_.heap_delta_bytes(), gpu_.info().heap_kind == "host");
    const on_stream::Job asked(gpu_.job());
    for (const on_stream::Job& one : {known, asked})
      expect(one.by_copy_engine(one.address(target_, peer_)) == (kind != "host"), "who copies");
    return runtime_.pe() == 0 ? known : asked;
  }

  std::string transfer(const std::string& kind) {
    const on_stream::Job job = this->job(kind);
    void* const stream = gpu_.stream();
    begin(1);
    on_stream::put(job, target_, source_, words * 8, peer_, stream);
    on_stream::barrier(job, team_world, stream);
    look("put", 1);
    begin(2);
    on_stream::get(job, target_, source_, words * 8, peer_, stream);
    look("get", 2);
    begin(3);
    on_stream::put_signal(job, target_, source_, words * 8, signal_, 3, device::SignalOp::set,
                          peer_, stream);
    on_stream::wait_until(job, signal_, device::Compare::equal, 3, peer_, stream);
    look("put with a signal", 3);
    return {};
  }

  /// The host enqueues a put behind a wait, and then what the wait is for.
  std::string enqueue_behind_a_wait(const std::string& kind) {
    const on_stream::Job job = this->job(kind);
    cudaStream_t other = nullptr;
    expect(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) == cudaSuccess, "stream");
    begin(1);
    on_stream::wait_until(job, signal_, device::Compare::equal, 7, runtime_.pe(), gpu_.stream());
    on_stream::put(job, target_, source_, words * 8, peer_, gpu_.stream());
    expect(cudaStreamQuery(static_cast<cudaStream_t>(gpu_.stream())) == cudaErrorNotReady,
           "a put that waits in the stream");
    on_stream::signal(job, signal_, 7, device::SignalOp::set, runtime_.pe(), other);
    on_stream::barrier(job, team_world, gpu_.stream());
    look("put behind a wait", 1);
    expect(cudaStreamDestroy(other) == cudaSuccess, "end of the stream");
    return {};
  }

private:
  /// New sources everywhere, nothing in the targets.
  void begin(std::uint64_t step) {
    const std::vector<std::uint64_t> row = row_of(runtime_.pe(), step);
    gpu_.copy(source_, row.data(), words * 8);
    gpu_.fill(target_, 0, words * 8);
    runtime_.collectives().barrier(team_world);
  }
  void look(const std::string& what, std::uint64_t step) {
    gpu_.wait(gpu_.stream(), what.c_str());
    expect(words_at(gpu_, target_, words) == row_of(peer_, step), what);
    runtime_.collectives().barrier(team_world);
  }

  Runtime& runtime_;
  PeGpu& gpu_;
  int peer_;
  std::uint64_t *source_ = nullptr, *target_ = nullptr, *signal_ = nullptr;
};

class StreamsOfHeaps : public OnGpus {
protected:
  static void expect_pairs(std::string (StreamPair::*body)(const std::string&)) {
    const std::string kind = GetParam();
    ForkJob job = job_with_heap(
        kind, 2, [kind, body](Runtime& runtime) { return (StreamPair(runtime).*body)(kind); });
    job.environment["SHMEMCTL_TIMEOUT"] = "60";
    expect_all_well(run_fork_job(job));
  }
};

TEST_P(StreamsOfHeaps, TransfersSpanTwoStepsOfTheGrowth) {
  expect_pairs(&StreamPair::transfer);
}

TEST_P(StreamsOfHeaps, TheHostNeverWaitsForWhatIsAheadOfAPut) {
  expect_pairs(&StreamPair::enqueue_behind_a_wait);
}

INSTANTIATE_TEST_SUITE_P(, StreamsOfHeaps, ::testing::Values("vmm", "ipc", "host"),
                         [](const auto& kind) { return std::string(kind.param); });

} // namespace
} // namespace shmemctl::test
