// Dispatch and combine on GPUs: every bit of every row, over shapes, routings and settings. PEs are
// threads of one process, GPUs in turn, so more ranks than GPUs can be had.
#include <gtest/gtest.h>

#include <cstdlib>
#include <unistd.h>

#include "tests/gpu/moe_rank.h"
#include "tests/gpu/moe_routings.h"
#include "tests/gpu/moe_test_support.h"
#include "tests/gpu/moe_watch.h"

namespace shmemctl::test {
namespace {

using moe::Scales;
using moe::Tuning;

struct Case {
  moe::Shape shape;
  Tuning tuning;
  std::int32_t chunk_bytes;
};
/// Sizes of all kinds; each setting somewhere.
const std::vector<Case> cases = {
    {shape_of(2, 256, 8, 7168, 333), {24, 7, 2, 1}, 3584},
    {shape_of(4, 256, 8, 7168, 100), {12, 5, 2, 1}, 1792},
    {shape_of(4, 64, 16, 2048, 1000), {7, 4, 3, 2}, 4096},
    {shape_of(2, 8, 1, 4096, 77), {3, 3, 1, 0}, 8192},
    {shape_of(4, 32, 8, 2176, 4100), {24, 8, 2, 0}, 1040},
    {shape_of(3, 12, 5, 2176, 129), {1, 1, 4, 2}, 4352},
    {shape_of(8, 64, 8, 2048, 200), {8, 4, 2, 1}, 2048},
    {shape_of(1, 16, 4, 4096, 50), {5, 2, 2, 1}, 2048},
    {shape_of(2, 16, 4, 16512, 40), {6, 2, 2, 1}, 8256}, // more scales than lanes hold
    {shape_of(2, 16, 4, 18432, 40), {6, 2, 2, 0}, 8192},
};

void round_trip(MoeRank& rank, const Case& one, const std::string& where) {
  rank.poison();
  rank.poison_plan();
  rank.notify();
  rank.dispatch(one.tuning);
  must(rank.check_plan(), where);
  must(rank.check_rows(), where);
  must(rank.check_records(), where);
  rank.experts();
  for (const bool with_bias : {false, true}) {
    rank.poison_results();
    rank.combine(one.tuning, one.chunk_bytes, with_bias, with_bias);
    must(rank.check_combined(with_bias), where + (with_bias ? ", bias" : ""));
    if (with_bias)
      must(rank.check_weights(), where);
  }
  rank.pe().barrier();
}

/// Every way of moving the rows, against the same checks.
void round_trips(MoeRank& rank, const Case& one, const std::string& where) {
  const auto verify = [&](const std::string& how) {
    must(rank.check_plan(), how);
    must(rank.check_rows(), how);
    must(rank.check_records(), how);
    rank.experts();
  };
  const auto combine = [&](const std::string& how) {
    rank.poison_results();
    rank.combine(one.tuning, one.chunk_bytes, true, true);
    must(rank.check_combined(true), how);
    must(rank.check_weights(), how);
    rank.pe().barrier();
  };
  for (const bool after_notify : {false, true})
    for (const MoeRank::RowsAt rows_at : {MoeRank::RowsAt::in_order, MoeRank::RowsAt::in_place}) {
      const std::string how = where + (after_notify ? ", after notify" : "") +
                              (rows_at == MoeRank::RowsAt::in_place ? ", in place" : "");
      rank.poison();
      rank.poison_plan();
      rank.notify(nullptr, after_notify);
      rank.dispatch(one.tuning, rows_at, after_notify);
      verify(how);
      combine(how);
    }
}

class Moe : public testing::TestWithParam<Scales> {};
INSTANTIATE_TEST_SUITE_P(Formats, Moe,
                         testing::Values(Scales::none, Scales::float32, Scales::power),
                         [](const auto& format) {
                           return format.param == Scales::none      ? "Bf16"
                                  : format.param == Scales::float32 ? "Fp8"
                                                                    : "Fp8Powers";
                         });

TEST_P(Moe, EveryBitOfEveryRow) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  for (const Case& one : reduced(cases))
    for (const NamedRouting& routing : all_routings(one.shape)) {
      if (!can_run(one.shape.n_ranks))
        continue;
      const std::string where = std::to_string(one.shape.n_ranks) + " ranks, hidden " +
                                std::to_string(one.shape.hidden) + ", " + routing.name;
      ThreadGpus gpus(one.shape.n_ranks);
      ASSERT_EQ(gpus.run(MoeRank::heap_bytes(one.shape, GetParam()),
                         [&](ThreadGpu& pe) {
                           MoeRank rank(pe, one.shape, GetParam(), routing.routing);
                           pe.barrier();
                           round_trip(rank, one, where);
                         }),
                "");
    }
}

TEST_P(Moe, EveryBitOfEveryRowByEachWayOfMovingThem) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  for (const Case& one : reduced(cases))
    for (const NamedRouting& routing : all_routings(one.shape)) {
      if (!can_run(one.shape.n_ranks) || is_reduced())
        continue; // dispatch would have to run beside notify
      const std::string where = std::to_string(one.shape.n_ranks) + " ranks, hidden " +
                                std::to_string(one.shape.hidden) + ", " + routing.name;
      ThreadGpus gpus(one.shape.n_ranks);
      ASSERT_EQ(gpus.run(MoeRank::heap_bytes(one.shape, GetParam()),
                         [&](ThreadGpu& pe) {
                           MoeRank rank(pe, one.shape, GetParam(), routing.routing);
                           pe.barrier();
                           round_trips(rank, one, where);
                         }),
                "");
    }
}

/// Full size, ranks at different times; every way of moving rows in turn, each time verified.
TEST_P(Moe, ThreeHundredTimesByEachWayInTurn) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  if (is_reduced())
    GTEST_SKIP() << "dispatch needs to run beside notify";
  const int n = std::max(2, count_devices());
  const moe::Shape shape = shape_of(n, 256, 8, 7168, 4096);
  const moe::Routing routing = uniform_routing(shape, 4096, 5);
  ThreadGpus gpus(n);
  const char* const said = std::getenv("SHMEMCTL_MOE_REPEATS");
  const int repeats = said != nullptr ? std::atoi(said) : share_of(300);
  ASSERT_EQ(gpus.run(MoeRank::heap_bytes(shape, GetParam()),
                     [&](ThreadGpu& pe) {
                       MoeRank rank(pe, shape, GetParam(), routing);
                       std::mt19937 random(static_cast<unsigned>(pe.job.pe));
                       pe.barrier();
                       for (int i = 0; i < repeats; ++i) {
                         const std::string where = "repetition " + std::to_string(i);
                         const int sms = 1 + (i * 7 + pe.job.pe * 17) % 40;
                         const Tuning tuning{sms, 7, 2, i % 2};
                         rank.poison();
                         dawdle(random);
                         rank.poison_plan();
                         rank.notify(nullptr, i % 2 == 0);
                         rank.dispatch(tuning,
                                       i % 3 == 0 ? MoeRank::RowsAt::in_place
                                                  : MoeRank::RowsAt::in_order,
                                       i % 4 < 3);
                         must(rank.check_rows(), where);
                         dawdle(random); // who combines too early finds poison
                         rank.experts();
                         dawdle(random);
                         rank.poison_results();
                         rank.combine({sms, 14, 2}, 7168 / n / 16 * 16);
                         must(rank.check_combined(), where);
                         pe.barrier();
                       }
                       must(rank.check_records(), "last repetition");
                     }),
            "");
}

/// Full size, ranks at different times, the plan used again; each time verified.
TEST_P(Moe, ThreeHundredTimes) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  const int n = std::max(2, count_devices());
  const std::int32_t tokens = is_reduced() ? 64 : 4096;
  const moe::Shape shape = shape_of(n, 256, 8, 7168, tokens);
  const moe::Routing routing = uniform_routing(shape, tokens, 5);
  ThreadGpus gpus(n);
  const char* const said = std::getenv("SHMEMCTL_MOE_REPEATS");
  const int repeats = said != nullptr ? std::atoi(said) : share_of(300);
  ASSERT_EQ(gpus.run(MoeRank::heap_bytes(shape, GetParam()),
                     [&](ThreadGpu& pe) {
                       MoeRank rank(pe, shape, GetParam(), routing);
                       std::mt19937 random(static_cast<unsigned>(pe.job.pe));
                       pe.barrier();
                       rank.notify();
                       for (int i = 0; i < repeats; ++i) {
                         const std::string where = "repetition " + std::to_string(i);
                         rank.poison();
                         dawdle(random);
                         if (i % 4 == 0) {
                           rank.poison_plan();
                           rank.notify();
                         }
                         // Ranks need not take the same number of multiprocessors.
                         const int sms = 8 + (i * 7 + pe.job.pe * 17) % 40;
                         rank.dispatch({sms, 7, 2, i % 2});
                         must(rank.check_rows(), where);
                         dawdle(random); // a rank that combines too early finds poison
                         rank.experts();
                         dawdle(random);
                         rank.poison_results();
                         rank.combine({sms, 14, 2}, 7168 / n / 16 * 16, false, i % 2 == 0);
                         must(rank.check_combined(), where);
                         if (i % 2 == 0)
                           must(rank.check_weights(), where);
                         pe.barrier();
                       }
                       must(rank.check_records(), "last repetition");
                     }),
            "");
}

TEST(MoeGraph, EachReplayIsACallOfItsOwn) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  const Case& one = cases[0];
  const moe::Routing routing = uniform_routing(one.shape, one.shape.max_tokens, 5);
  ThreadGpus gpus(2);
  ASSERT_EQ(gpus.run(MoeRank::heap_bytes(one.shape, Scales::float32),
                     [&](ThreadGpu& pe) {
                       MoeRank rank(pe, one.shape, Scales::float32, routing);
                       cudaGraph_t graph = nullptr;
                       cudaGraphExec_t ready = nullptr;
                       rank.expected_rows();
                       // a stream capture fails if another rank calls memset on the same GPU
                       pe.barrier();
                       cuda_must(
                           cudaStreamBeginCapture(pe.stream, cudaStreamCaptureModeThreadLocal),
                           "capture");
                       rank.notify();
                       rank.dispatch(one.tuning);
                       rank.experts();
                       rank.combine(one.tuning, one.chunk_bytes);
                       cuda_must(cudaStreamEndCapture(pe.stream, &graph), "end of the capture");
                       cuda_must(cudaGraphInstantiate(&ready, graph, 0), "graph");
                       pe.barrier();
                       for (int i = 0; i < 5; ++i) {
                         rank.poison_results();
                         rank.poison_plan();
                         rank.poison();
                         cuda_must(cudaGraphLaunch(ready, pe.stream), "launch of the graph");
                         must(rank.check_plan(), "graph");
                         must(rank.check_rows(), "graph");
                         must(rank.check_combined(), "graph");
                         pe.barrier();
                       }
                       cudaGraphExecDestroy(ready);
                       cudaGraphDestroy(graph);
                     }),
            "");
}

/// A stream beside the PE's, with a kernel that runs until it is let go.
class OtherWork {
public:
  explicit OtherWork(std::uint64_t timeout_ns) : timeout_ns_(timeout_ns) {
    cuda_must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    cuda_must(cudaEventCreateWithFlags(&moved, cudaEventDisableTiming), "event");
    cuda_must(cudaEventCreateWithFlags(&computed, cudaEventDisableTiming), "event");
    cuda_must(cudaHostAlloc(&words_, 2 * sizeof *words_, cudaHostAllocMapped), "host");
    words_[0] = words_[1] = 0;
  }
  ~OtherWork() {
    let_go();
    cudaStreamSynchronize(stream);
    cudaEventDestroy(moved);
    cudaEventDestroy(computed);
    cudaStreamDestroy(stream);
    cudaFreeHost(words_);
  }
  OtherWork(const OtherWork&) = delete;
  OtherWork& operator=(const OtherWork&) = delete;
  void begin() {
    words_[0] = words_[1] = 0; // the last one has ended
    launch_must(launch_hold(words_, words_ + 1, timeout_ns_, stream));
  }
  bool runs() const { return cudaStreamQuery(stream) == cudaErrorNotReady && ended() == 0; }
  void let_go() { __atomic_store_n(words_, 1u, __ATOMIC_RELEASE); }
  /// 1: let go, 2: not in time, 0: not yet.
  std::uint32_t ended() const { return __atomic_load_n(words_ + 1, __ATOMIC_ACQUIRE); }

  cudaStream_t stream = nullptr;
  cudaEvent_t moved = nullptr, computed = nullptr;

private:
  std::uint64_t timeout_ns_;
  std::uint32_t* words_ = nullptr;
};

/// As docs/explanation/moe_gpu.md shows it: a dispatch ends while a kernel of another stream runs;
/// what needs its rows waits for its event, and combine for theirs.
TEST(MoeStreams, ADispatchRunsBesideOtherWorkAndEventsOrderWhatNeedsIt) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  if (is_reduced())
    GTEST_SKIP() << "kernels of two streams need to run beside each other";
  const moe::Shape shape = shape_of(2, 16, 4, 2048, 100);
  const moe::Routing routing = uniform_routing(shape, 91, 5);
  ThreadGpus gpus(2);
  ASSERT_EQ(gpus.run(MoeRank::heap_bytes(shape, Scales::none),
                     [&](ThreadGpu& pe) {
                       MoeRank rank(pe, shape, Scales::none, routing);
                       OtherWork work(pe.job.timeout_ns);
                       rank.expected_rows();
                       for (int i = 0; i < 5; ++i) {
                         rank.poison_plan();
                         rank.poison_results();
                         rank.poison(); // with a barrier: no memory is allocated from here on
                         work.begin();
                         rank.notify();
                         rank.dispatch({4, 4, 2, 1});
                         cuda_must(cudaEventRecord(work.moved, pe.stream), "event");
                         cuda_must(cudaStreamWaitEvent(work.stream, work.moved, 0), "event");
                         rank.experts_on(work.stream);
                         must(rank.check_rows(), "beside other work");
                         if (!work.runs())
                           throw std::runtime_error("the dispatch waited for the other kernel");
                         cuda_must(cudaEventRecord(work.computed, work.stream), "event");
                         cuda_must(cudaStreamWaitEvent(pe.stream, work.computed, 0), "event");
                         rank.combine({4, 4, 2}, 2048);
                         work.let_go();
                         must(rank.check_combined(), "behind the event");
                         if (work.ended() != 1)
                           throw std::runtime_error("the other kernel was not let go");
                         pe.barrier();
                       }
                     }),
            "");
}

TEST(MoeNotify, TheHostReceivesTotals) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  moe::Shape shape = shape_of(2, 16, 4, 2048, 100);
  shape.expert_alignment = 16;
  const moe::Routing routing = uniform_routing(shape, 91, 5);
  ThreadGpus gpus(2);
  ASSERT_EQ(
      gpus.run(MoeRank::heap_bytes(shape, Scales::none),
               [&](ThreadGpu& pe) {
                 MoeRank rank(pe, shape, Scales::none, routing);
                 std::uint64_t* words = nullptr;
                 cuda_must(cudaHostAlloc(&words, 9 * sizeof *words, cudaHostAllocMapped), "host");
                 pe.barrier();
                 for (std::uint64_t call = 1; call <= 3; ++call) {
                   rank.poison_plan();
                   rank.notify(words);
                   must(rank.check_plan(), "plan");
                   const auto expected = moe::expected_expert_counts(shape, routing, pe.job.pe);
                   if (words[0] != moe::count_word(call, rank.expected_rows()))
                     throw std::runtime_error("rows that the host sees");
                   for (std::size_t i = 0; i < expected.size(); ++i)
                     if (words[1 + i] != moe::count_word(call, expected[i]))
                       throw std::runtime_error("counts of experts that the host sees");
                 }
                 cudaFreeHost(words);
               }),
      "");
}

TEST(MoeNotify, ARankThatDoesNotComeIsNamed) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  if (!can_run(3))
    GTEST_SKIP() << "ranks share a GPU";
  const moe::Shape shape = shape_of(3, 12, 4, 2048, 100);
  const moe::Routing routing = uniform_routing(shape, 91, 5);
  // Notify, dispatch, combine; dispatch that begins with notify.
  for (const int op : {0, 1, 2, 3}) {
    ThreadGpus gpus(3);
    const std::string said = gpus.run(
        MoeRank::heap_bytes(shape, Scales::none),
        [&](ThreadGpu& pe) {
          MoeRank rank(pe, shape, Scales::none, routing);
          pe.barrier();
          if (op > 0)
            rank.notify();
          if (op > 1)
            rank.dispatch({4, 4, 2, 1});
          pe.synchronize();
          pe.barrier();
          if (pe.job.pe == 1)
            return pe.wait_for_others();
          if (op == 0)
            rank.notify();
          else if (op == 1)
            rank.dispatch({4, 4, 2, 1});
          else if (op == 2)
            rank.combine({4, 4, 2}, 2048);
          else
            rank.notify(nullptr, true);
          if (op == 3)
            rank.dispatch({4, 4, 2, 1}, MoeRank::RowsAt::in_place, true);
          pe.synchronize();
        },
        0.3);
    for (const int pe : {0, 2})
      EXPECT_NE(said.find("PE " + std::to_string(pe) + " waited for PE 1:"), std::string::npos)
          << op << ": " << said;
  }
}

} // namespace
} // namespace shmemctl::test
