// That rows are there when they are said to be: watched while they come, over a busy link.
#include <gtest/gtest.h>

#include <memory>

#include "tests/gpu/moe_latency_rank.h"
#include "tests/gpu/moe_rank.h"
#include "tests/gpu/moe_routings.h"
#include "tests/gpu/moe_watch.h"

namespace shmemctl::test {
namespace {

using moe::Combine;
using moe::Halves;
using moe::Scales;

constexpr int repeats = 100;
constexpr std::size_t load_bytes = 16 << 20;

int gpus_here() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}
int ranks_here() {
  return std::max(2, gpus_here());
}
int share_of_gpu() {
  return (ranks_here() + gpus_here() - 1) / gpus_here();
}

moe::Shape shape_of(std::int32_t tokens) {
  moe::Shape shape;
  shape.n_ranks = ranks_here();
  shape.n_experts = 64 * ranks_here();
  shape.top_k = 8;
  shape.hidden = 7168;
  shape.max_tokens = tokens;
  return shape;
}

/// Looks at the rows of a rank as they come, and keeps the link to its neighbour busy meanwhile.
class Watcher {
public:
  /// @param rows_of where a source's rows begin
  Watcher(ThreadGpu& pe, const moe::Shape& shape, const moe::Routing& routing,
          const std::function<const std::byte*(std::int32_t)>& rows_of)
      : pe_(pe), wrong_(1), load_(pe.take(load_bytes)) {
    cuda_must(cudaStreamCreateWithFlags(&watching_, cudaStreamNonBlocking), "stream");
    cuda_must(cudaStreamCreateWithFlags(&loading_, cudaStreamNonBlocking), "stream");
    calls_.shape = shape;
    calls_.seed = moe_seed;
    calls_.timeout_ns = pe.job.timeout_ns;
    calls_.wrong = wrong_.data();
    std::vector<std::vector<std::int32_t>> tokens(static_cast<std::size_t>(shape.n_ranks));
    for (const moe::RowSource& row : moe::expected_rows(shape, routing, pe.job.pe))
      tokens[static_cast<std::size_t>(row.rank)].push_back(row.token);
    for (std::int32_t source = 0; source < shape.n_ranks; ++source) {
      const std::vector<std::int32_t>& of_source = tokens[static_cast<std::size_t>(source)];
      tokens_.push_back(std::make_unique<GpuArray<std::int32_t>>(of_source));
      calls_.sources[source] = {tokens_.back()->data(), static_cast<std::int32_t>(of_source.size()),
                                rows_of(source)};
    }
  }
  ~Watcher() {
    cudaStreamSynchronize(loading_);
    cudaStreamDestroy(watching_);
    cudaStreamDestroy(loading_);
  }

  const WatchedCalls& calls() const { return calls_; }
  void* stream() const { return watching_; }
  void clear() {
    cuda_must(cudaMemsetAsync(wrong_.data(), 0, sizeof(moe::Wrong), watching_), "clear");
  }
  /// For some 100 us.
  void load_the_link() {
    const int other = (pe_.job.pe + 1) % pe_.job.n_pes;
    std::byte* const there = pe_.heap_of(other) + (load_ - pe_.job.heap);
    for (int i = 0; i < 2; ++i)
      cuda_must(cudaMemcpyAsync(there, load_, load_bytes, cudaMemcpyDefault, loading_), "load");
  }
  /// "" or what was seen before it was right.
  std::string seen() {
    cuda_must(cudaStreamSynchronize(watching_), "watching");
    const moe::Wrong wrong = wrong_.values()[0];
    if (wrong.rows == 0)
      return "";
    return std::to_string(wrong.rows) + " words were not there when they were said to be; one in " +
           "row " + std::to_string(wrong.row_and_word >> 32) + " of its source, word " +
           std::to_string(static_cast<std::int32_t>(wrong.row_and_word) - 1) + ": expected " +
           std::to_string(wrong.expected) + ", found " + std::to_string(wrong.found);
  }

private:
  ThreadGpu& pe_;
  GpuArray<moe::Wrong> wrong_;
  std::byte* load_;
  cudaStream_t watching_ = nullptr, loading_ = nullptr;
  std::vector<std::unique_ptr<GpuArray<std::int32_t>>> tokens_;
  WatchedCalls calls_{};
};

void require(const std::string& wrong, int repetition) {
  if (!wrong.empty())
    throw std::runtime_error("repetition " + std::to_string(repetition) + ": " + wrong);
}

/// One row for each warp: nothing but the wait for the last stores is between them and the word.
TEST(MoeOrder, ADispatchHasMovedEverythingWhenItSaysSo) {
  if (gpus_here() == 0)
    GTEST_SKIP() << "no GPU";
  const int sms = 100 / share_of_gpu(), warps = 7;
  const moe::Shape shape = shape_of(sms * warps);
  const moe::Routing routing = uniform_routing(shape, shape.max_tokens, 5);
  const std::vector<std::int32_t> counts = moe::row_counts(shape, routing);
  ThreadGpus gpus(shape.n_ranks);
  ASSERT_EQ(gpus.run(MoeRank::heap_bytes(shape, Scales::none) + load_bytes,
                     [&](ThreadGpu& pe) {
                       MoeRank rank(pe, shape, Scales::none, routing);
                       Watcher watcher(pe, shape, routing, [&](std::int32_t source) {
                         const std::int64_t row =
                             moe::base_of(counts.data(), shape.n_ranks, source, pe.job.pe);
                         return rank.memory().rows + row * shape.value_bytes(moe::Format::bf16);
                       });
                       pe.barrier();
                       rank.notify();
                       for (int i = 0; i < repeats; ++i) {
                         rank.poison();
                         watcher.clear();
                         launch_must(launch_watch_dispatch(watcher.calls(), rank.memory().cells,
                                                           static_cast<std::uint64_t>(i) + 1,
                                                           watcher.stream()));
                         watcher.load_the_link();
                         rank.dispatch({sms, warps, 2, 1, 0});
                         require(watcher.seen(), i);
                         pe.synchronize();
                         pe.barrier();
                       }
                     }),
            "");
}

TEST(MoeOrder, LowLatencyRowsAreThereWhenTheirBlockSaysSo) {
  if (gpus_here() == 0)
    GTEST_SKIP() << "no GPU";
  const int sms = 120 / share_of_gpu();
  const moe::Shape shape = shape_of(sms - 1); // a block for each token
  const moe::Routing routing = uniform_routing(shape, shape.max_tokens, 6);
  ThreadGpus gpus(shape.n_ranks);
  ASSERT_EQ(
      gpus.run(MoeLatencyRank::heap_bytes(shape, Scales::none, Combine::partial) + 2 * load_bytes,
               [&](ThreadGpu& pe) {
                 MoeLatencyRank rank(pe, shape, Scales::none, routing, Combine::partial);
                 const std::int64_t row_bytes = shape.value_bytes(moe::Format::bf16);
                 std::unique_ptr<Watcher> watchers[2]; // by half
                 for (int half = 0; half < 2; ++half)
                   watchers[half] =
                       std::make_unique<Watcher>(pe, shape, routing, [&](std::int32_t source) {
                         return rank.memory().rows + (std::int64_t{half} * shape.max_rows() +
                                                      moe::fixed_slot(shape, source, 0)) *
                                                         row_bytes;
                       });
                 pe.barrier();
                 for (int i = 0; i < repeats; ++i) {
                   const std::uint64_t epoch = static_cast<std::uint64_t>(i) + 1;
                   Watcher& watcher = *watchers[moe::half_of_epoch(epoch)];
                   rank.poison();
                   watcher.clear();
                   launch_must(launch_watch_low_latency(watcher.calls(), rank.memory().cells, epoch,
                                                        watcher.stream()));
                   watcher.load_the_link();
                   rank.dispatch(Halves::send, sms);
                   require(watcher.seen(), i);
                   pe.synchronize();
                   pe.barrier();
                 }
               }),
      "");
}

} // namespace
} // namespace shmemctl::test
