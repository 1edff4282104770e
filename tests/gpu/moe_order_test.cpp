// That rows are there when they are said to be: watched while they come, over a busy link.
#include <gtest/gtest.h>

#include "tests/gpu/moe_low_latency_rank.h"
#include "tests/gpu/moe_rank.h"
#include "tests/gpu/moe_routings.h"
#include "tests/gpu/moe_watch.h"
#include "tests/gpu/share.h"
#include <memory>
#include <unistd.h>

namespace shmemctl::test {
namespace {

using moe::Combine;
using moe::Phases;
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

/// Checks the rows of a rank as they come, and keeps the link to its neighbour busy meanwhile.
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
  /// @param launch of the kernel that looks, which soon runs
  template <class Launch>
  void begin(const Launch& launch) {
    cuda_must(cudaMemsetAsync(wrong_.data(), 0, sizeof(moe::Mismatch), watching_), "clear");
    launch_must(launch());
    usleep(20);
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
    const moe::Mismatch wrong = wrong_.values()[0];
    if (wrong.rows == 0)
      return "";
    return std::to_string(wrong.rows) + " words were not there when they were said to be; one in " +
           "row " + std::to_string(wrong.row_and_word >> 32) + " of its source, word " +
           std::to_string(static_cast<std::int32_t>(wrong.row_and_word) - 1) + ": expected " +
           std::to_string(wrong.expected) + ", found " + std::to_string(wrong.found);
  }

private:
  ThreadGpu& pe_;
  GpuArray<moe::Mismatch> wrong_;
  std::byte* load_;
  cudaStream_t watching_ = nullptr, loading_ = nullptr;
  std::vector<std::unique_ptr<GpuArray<std::int32_t>>> tokens_;
  WatchedCalls calls_{};
};

/// Watches calls, one after the other, each by everybody. The first one is a rehearsal, because a
/// kernel's first launch may have to wait for those that run: nothing is waited for, or looked at.
/// @param watcher_of,watch,call by the call's number, from 1; a watch for number 0 waits for
/// nothing
void watch_calls(ThreadGpu& pe, const std::function<Watcher&(std::uint64_t)>& watcher_of,
                 const std::function<void()>& poison,
                 const std::function<std::string(const Watcher&, std::uint64_t)>& watch,
                 const std::function<void()>& call) {
  for (std::uint64_t number = 1; number <= repeats + 1; ++number) {
    Watcher& watcher = watcher_of(number);
    const bool rehearses = number == 1;
    poison();
    watcher.begin([&] { return watch(watcher, rehearses ? 0 : number); });
    if (rehearses)
      watcher.seen();
    watcher.load_the_link();
    call();
    if (const std::string wrong = watcher.seen(); !wrong.empty() && !rehearses)
      throw std::runtime_error("call " + std::to_string(number) + ": " + wrong);
    pe.synchronize();
    pe.barrier();
  }
}

/// One row for each warp: nothing but the wait for the last stores is between them and the word.
TEST(MoeOrder, ADispatchHasMovedEverythingWhenItSaysSo) {
  if (gpus_here() == 0)
    GTEST_SKIP() << "no GPU";
  if (is_reduced())
    GTEST_SKIP() << "kernels that watch others need those to run beside them";
  const int sms = 100 / share_of_gpu(), warps = 7;
  const moe::Shape shape = shape_of(sms * warps);
  const moe::Routing routing = uniform_routing(shape, shape.max_tokens, 5);
  const std::vector<std::int32_t> counts = moe::row_counts(shape, routing);
  const auto body = [&](ThreadGpu& pe) {
    MoeRank rank(pe, shape, Scales::none, routing);
    Watcher watcher(pe, shape, routing, [&](std::int32_t source) {
      const std::int64_t row = moe::base_of(counts.data(), shape.n_ranks, source, pe.job.pe);
      return rank.memory().rows + row * shape.value_bytes(moe::Format::bf16);
    });
    pe.barrier();
    rank.notify();
    watch_calls(
        pe, [&](std::uint64_t) -> Watcher& { return watcher; }, [&] { rank.poison(); },
        [&](const Watcher& by, std::uint64_t number) {
          return launch_watch_dispatch(by.calls(), rank.memory().flags, number, by.stream());
        },
        [&] {
          rank.dispatch({sms, warps, 2, 1, 0});
        });
  };
  ASSERT_EQ(
      ThreadGpus(shape.n_ranks).run(MoeRank::heap_bytes(shape, Scales::none) + load_bytes, body),
      "");
}

TEST(MoeOrder, LowLatencyRowsAreThereWhenTheirBlockSaysSo) {
  if (gpus_here() == 0)
    GTEST_SKIP() << "no GPU";
  if (is_reduced())
    GTEST_SKIP() << "kernels that watch others need those to run beside them";
  const int sms = 120 / share_of_gpu();
  const moe::Shape shape = shape_of(sms - 1); // a block for each token
  const moe::Routing routing = uniform_routing(shape, shape.max_tokens, 6);
  const auto body = [&](ThreadGpu& pe) {
    MoeLatencyRank rank(pe, shape, Scales::none, routing, Combine::partial);
    std::unique_ptr<Watcher> watchers[2]; // by half
    for (int buffer = 0; buffer < 2; ++buffer)
      watchers[buffer] = std::make_unique<Watcher>(pe, shape, routing, [&](std::int32_t source) {
        const std::int64_t row =
            std::int64_t{buffer} * shape.max_rows() + moe::fixed_slot(shape, source, 0);
        return rank.memory().rows + row * shape.value_bytes(moe::Format::bf16);
      });
    pe.barrier();
    watch_calls(
        pe,
        [&](std::uint64_t number) -> Watcher& { return *watchers[moe::buffer_of_epoch(number)]; },
        [&] { rank.poison(); },
        [&](const Watcher& by, std::uint64_t number) {
          return launch_watch_low_latency(by.calls(), rank.memory().flags, number, by.stream());
        },
        [&] {
          rank.launch_next(moe::LowLatencyCalls::Step::none); // no rank receives or combines
          rank.dispatch(Phases::send, sms);
        });
  };
  ASSERT_EQ(
      ThreadGpus(shape.n_ranks)
          .run(MoeLatencyRank::heap_bytes(shape, Scales::none, Combine::partial) + 2 * load_bytes,
               body),
      "");
}

} // namespace
} // namespace shmemctl::test
