// Low-latency dispatch and combine on GPUs: every bit of every row, over shapes, routings and
// settings; and what happens when a rank does not come.
#include <gtest/gtest.h>

#include <unistd.h>

#include "tests/gpu/moe_low_latency_rank.h"
#include "tests/gpu/moe_routings.h"
#include "tests/gpu/moe_test_support.h"

namespace shmemctl::test {
namespace {

using moe::Combine;
using moe::Phases;
using moe::Scales;
using moe::Tuning;

struct LatencyCase {
  moe::Shape shape;
  Tuning tuning;
  std::int32_t chunk_bytes;
};
moe::Shape aligned(moe::Shape shape, std::int32_t expert_alignment) {
  shape.expert_alignment = expert_alignment;
  return shape;
}
const std::vector<LatencyCase> latency_cases = {
    {shape_of(2, 256, 8, 7168, 128), {60, 8, 1}, 1792},
    {shape_of(4, 256, 8, 7168, 60), {24, 4, 2}, 1024},
    {shape_of(4, 64, 16, 2048, 128), {20, 4, 1}, 1024},
    {shape_of(3, 12, 1, 4096, 300), {7, 3, 2}, 8192},
    {shape_of(4, 32, 5, 2176, 77), {1, 1, 1}, 1040},
    {shape_of(1, 16, 4, 4096, 16), {5, 2, 2}, 2048},
    {aligned(shape_of(2, 24, 8, 2176, 61), 16), {9, 4, 1}, 1088},
};

void latency_round_trip(MoeLatencyRank& rank, const LatencyCase& one, bool apart,
                        const std::string& where) {
  const int sms = 132 / rank.pe().device_share() / 2;
  rank.poison();
  if (apart) {
    rank.dispatch(Phases::send, sms);
    rank.dispatch(Phases::receive, sms);
  } else {
    rank.dispatch(Phases::both, sms);
  }
  must(rank.check_rows(), where);
  rank.experts();
  rank.poison_results();
  if (apart)
    rank.combine(one.tuning, one.chunk_bytes, Phases::send);
  rank.combine(one.tuning, one.chunk_bytes, apart ? Phases::receive : Phases::both);
  must(rank.check_combined(), where);
  rank.pe().barrier();
}

/// What comes back, and from which layout.
struct Back {
  const char* name;
  Combine combine;
  bool by_expert;
};
constexpr Back weighted{"Weighted", Combine::weighted, false};
constexpr Back partial{"Partial", Combine::partial, false};
constexpr Back by_expert{"ByExpert", Combine::weighted, true};

class MoeLowLatency : public testing::TestWithParam<std::tuple<Scales, Back>> {};
std::string name_of(const testing::TestParamInfo<std::tuple<Scales, Back>>& info) {
  const char* const scales[] = {"Bf16", "Fp8", "Fp8Powers", "Fp8Ue8m0"};
  return std::string(scales[static_cast<int>(std::get<0>(info.param))]) +
         std::get<1>(info.param).name;
}
INSTANTIATE_TEST_SUITE_P(Formats, MoeLowLatency,
                         testing::Combine(testing::Values(Scales::none, Scales::float32,
                                                          Scales::power, Scales::ue8m0),
                                          testing::Values(weighted, partial, by_expert)),
                         name_of);

TEST_P(MoeLowLatency, EveryBitOfEveryRow) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  const auto [scales, back] = GetParam();
  for (const LatencyCase& one : reduced(latency_cases))
    for (const NamedRouting& routing : all_routings(one.shape)) {
      if (!can_run(one.shape.n_ranks))
        continue;
      const std::string where = std::to_string(one.shape.n_ranks) + " ranks, hidden " +
                                std::to_string(one.shape.hidden) + ", " + routing.name;
      ThreadGpus gpus(one.shape.n_ranks);
      ASSERT_EQ(
          gpus.run(MoeLatencyRank::heap_bytes(one.shape, scales, back.combine, back.by_expert),
                   [&, scales = scales, back = back](ThreadGpu& pe) {
                     MoeLatencyRank rank(pe, one.shape, scales, routing.routing, back.combine,
                                         back.by_expert);
                     pe.barrier();
                     for (int i = 0; i < (is_reduced() ? 2 : 5); ++i)
                       latency_round_trip(rank, one, i % 2 == 1, where);
                   }),
          "");
    }
}

/// Dispatches and combines in a row without the host between: halves and epochs in their turns.
TEST(MoeLowLatency, ThreeHundredTimes) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  const LatencyCase& one = latency_cases[0];
  const moe::Routing routing = uniform_routing(one.shape, 128, 6);
  for (const Back& back : {weighted, partial, by_expert}) {
    ThreadGpus gpus(2);
    ASSERT_EQ(gpus.run(MoeLatencyRank::heap_bytes(one.shape, Scales::float32, back.combine,
                                                  back.by_expert),
                       [&](ThreadGpu& pe) {
                         MoeLatencyRank rank(pe, one.shape, Scales::float32, routing, back.combine,
                                             back.by_expert);
                         std::mt19937 random(static_cast<unsigned>(pe.job.pe));
                         pe.barrier();
                         for (int i = 0; i < share_of(300); ++i) {
                           rank.poison();
                           dawdle(random);
                           for (int burst = 0; burst <= i % 4; ++burst) {
                             rank.dispatch();
                             rank.poison_outputs();
                             if (burst % 2 == 0)
                               dawdle(random); // a rank that combines too early finds poison
                             rank.experts();
                             rank.poison_results();
                             rank.combine(one.tuning, one.chunk_bytes);
                           }
                           const std::string where = "repetition " + std::to_string(i);
                           must(rank.check_rows(), where);
                           must(rank.check_combined(), where);
                           pe.barrier();
                         }
                       }),
              "");
  }
}

/// A second micro-batch before the combine of the first one: the launcher refuses it, and what was
/// under way goes on.
TEST(MoeLowLatency, ASecondMicroBatchInFlightIsRefused) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  const LatencyCase& one = latency_cases[0];
  const moe::Routing routing = uniform_routing(one.shape, 128, 6);
  ThreadGpus gpus(2);
  ASSERT_EQ(gpus.run(MoeLatencyRank::heap_bytes(one.shape, Scales::none, Combine::weighted),
                     [&](ThreadGpu& pe) {
                       MoeLatencyRank rank(pe, one.shape, Scales::none, routing, Combine::weighted);
                       const int sms = 132 / pe.device_share() / 2;
                       for (const Phases first : {Phases::both, Phases::send}) {
                         rank.poison();
                         moe::LowLatencyCalls calls;
                         launch_must(rank.dispatch_as(calls, first, sms));
                         const std::string said = rank.dispatch_as(calls, Phases::both, sms);
                         if (said.find("dispatch before") == std::string::npos)
                           throw std::runtime_error("a second dispatch was not refused: " + said);
                         if (first == Phases::send)
                           launch_must(rank.dispatch_as(calls, Phases::receive, sms));
                         rank.received_one();
                         must(rank.check_rows(), "of the first dispatch");
                         pe.barrier();
                       }
                     }),
            "");
}

TEST(MoeLowLatency, ADeadRankIsMaskedAndTheRestGoOn) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  if (!can_run(3))
    GTEST_SKIP() << "ranks share a GPU";
  const moe::Shape shape = shape_of(3, 12, 4, 2048, 64);
  const moe::Routing routing = uniform_routing(shape, 64, 5);
  ThreadGpus gpus(3);
  ASSERT_EQ(
      gpus.run(
          MoeLatencyRank::heap_bytes(shape, Scales::float32, Combine::partial),
          [&](ThreadGpu& pe) {
            MoeLatencyRank rank(pe, shape, Scales::float32, routing, Combine::partial);
            rank.poison();
            rank.dispatch(Phases::both, 20);
            must(rank.check_rows(), "while all live");
            rank.launch_next(moe::LowLatencyCalls::Step::none); // no call combines this dispatch
            pe.barrier();
            if (pe.job.pe == 1)
              return pe.wait_for_others();
            for (int i = 0; i < 3; ++i) {
              rank.dispatch(Phases::both, 20);
              rank.combine({8, 4, 1}, 1024);
            }
            pe.synchronize();
            const moe::LowLatencyFlags flags = rank.flags();
            for (int other = 0; other < 3; ++other)
              if ((flags.masked[other] != 0) != (other == 1))
                throw std::runtime_error("mask of rank " + std::to_string(other));
            if (flags.wait_ns[0][1] < 100000000)
              throw std::runtime_error("the wait for rank 1 is not counted");
            for (int other = 0; other < 3; ++other) {
              // One that is masked has not begun what the others have: all of its wait is that.
              if (flags.begun[other] != (other == 1 ? 1U : 4U))
                throw std::runtime_error("the beginning of rank " + std::to_string(other));
              if (flags.begin_wait_ns[other] > flags.wait_ns[0][other])
                throw std::runtime_error("the skew of rank " + std::to_string(other));
            }
            if (flags.begin_wait_ns[1] < 100000000)
              throw std::runtime_error("what rank 1 was waited for is no skew");
            const auto counts = rank.counts();
            const auto expected = moe::row_counts(shape, routing);
            for (int source = 0; source < 3; ++source)
              if (counts[static_cast<std::size_t>(source)] !=
                  (source == 1 ? -1 : expected[static_cast<std::size_t>(source * 3 + pe.job.pe)]))
                throw std::runtime_error("rows of rank " + std::to_string(source));
          },
          0.2),
      "");
}

/// Rank 1 of a job, or one of those that mask it.
class LateRank {
public:
  static constexpr std::int32_t late = 1;
  explicit LateRank(MoeLatencyRank& rank) : rank_(rank), is_delayed_(rank.pe().job.pe == late) {
    for (std::int32_t other = 0; other < rank.shape().n_ranks; ++other)
      if (is_delayed_ ? other != late : other == late)
        masked_.push_back(other);
  }
  /// Done by one side, while the other one waits.
  template <class Act>
  void only(bool by_late_rank, const Act& act) {
    if (is_delayed_ == by_late_rank)
      act();
    rank_.pe().synchronize();
    rank_.pe().barrier();
  }
  void combine(Phases phases) {
    rank_.poison_results();
    rank_.combine({8, 4, 1}, 1024, phases);
  }
  void look(const std::string& where) { must(rank_.check_combined_without(masked_), where); }
  void check_counts(const std::string& where) {
    rank_.pe().synchronize();
    for (const std::int32_t other : masked_)
      if (rank_.counts()[static_cast<std::size_t>(other)] != -1)
        throw std::runtime_error(where + ": rows of rank " + std::to_string(other));
  }

private:
  MoeLatencyRank& rank_;
  const bool is_delayed_;
  std::vector<std::int32_t> masked_;
};

/// A rank that is masked lives on: it gets the rows that were sent before, tells of its outputs
/// before the others look, and goes on for two more calls. Neither side takes the other's data.
TEST(MoeLowLatency, NothingIsTakenFromAMaskedRankThatComesLate) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  if (!can_run(3))
    GTEST_SKIP() << "ranks share a GPU";
  const moe::Shape shape = shape_of(3, 12, 4, 2048, 64);
  const moe::Routing routing = uniform_routing(shape, 64, 5);
  for (const Combine combine : {Combine::partial, Combine::weighted}) {
    ThreadGpus gpus(3);
    ASSERT_EQ(gpus.run(
                  MoeLatencyRank::heap_bytes(shape, Scales::float32, combine),
                  [&](ThreadGpu& pe) {
                    MoeLatencyRank rank(pe, shape, Scales::float32, routing, combine);
                    LateRank side(rank);
                    latency_round_trip(rank, {shape, {8, 4, 1}, 1024}, false, "all in time");
                    rank.poison();
                    side.only(false, [&] {
                      rank.dispatch(Phases::both, 20); // masks the late one
                      rank.experts();
                    });
                    side.only(true, [&] {
                      rank.dispatch(Phases::both, 20);
                      must(rank.check_rows(), "rows that were sent before");
                      rank.experts();
                      rank.combine({8, 4, 1}, 1024, Phases::send);
                    });
                    side.only(false, [&] { side.combine(Phases::both); });
                    side.only(true, [&] { side.combine(Phases::receive); });
                    side.look("the call that it was late for");
                    for (int i = 0; i < 2; ++i) {
                      pe.barrier();
                      rank.dispatch(Phases::both, 20);
                      rank.experts();
                      side.combine(Phases::both);
                      side.check_counts("a call after that");
                      side.look("a call after that");
                    }
                    pe.barrier();
                  },
                  0.2),
              "");
  }
}

} // namespace
} // namespace shmemctl::test
