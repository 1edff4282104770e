// Dispatch and combine on GPUs: every bit of every row, over shapes, routings and settings. PEs are
// threads of one process, GPUs in turn, so more ranks than GPUs can be had.
#include <gtest/gtest.h>

#include <cstdlib>
#include <unistd.h>

#include "tests/gpu/moe_latency_rank.h"
#include "tests/gpu/moe_routings.h"

namespace shmemctl::test {
namespace {

using moe::Combine;
using moe::Halves;
using moe::Scales;
using moe::Tuning;

bool has_gpu() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

moe::Shape shape_of(std::int32_t n_ranks, std::int32_t n_experts, std::int32_t top_k,
                    std::int32_t hidden, std::int32_t max_tokens) {
  moe::Shape shape;
  shape.n_ranks = n_ranks;
  shape.n_experts = n_experts;
  shape.top_k = top_k;
  shape.hidden = hidden;
  shape.max_tokens = max_tokens;
  return shape;
}

void must(const std::string& wrong, const std::string& where) {
  if (!wrong.empty())
    throw std::runtime_error(where + ": " + wrong);
}
/// So that ranks come at different times.
void dawdle(std::mt19937& random) {
  usleep(static_cast<useconds_t>(random() % 300));
}

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
};

void round_trip(MoeRank& rank, const Case& one, const std::string& where) {
  rank.poison();
  rank.notify();
  rank.dispatch(one.tuning);
  must(rank.check_plan(), where);
  must(rank.check_rows(), where);
  must(rank.check_records(), where);
  rank.experts();
  for (const bool with_bias : {false, true}) {
    rank.poison_results();
    rank.combine(one.tuning, one.chunk_bytes, with_bias);
    must(rank.check_combined(with_bias), where + (with_bias ? ", bias" : ""));
  }
  rank.pe().barrier();
}

class Moe : public testing::TestWithParam<Scales> {};
INSTANTIATE_TEST_SUITE_P(Formats, Moe, testing::Values(Scales::none, Scales::float32),
                         [](const auto& format) {
                           return format.param == Scales::none ? "Bf16" : "Fp8";
                         });

TEST_P(Moe, EveryBitOfEveryRow) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  for (const Case& one : cases)
    for (const NamedRouting& routing : all_routings(one.shape)) {
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

/// Full size, ranks at different times, the plan used again; each time verified.
TEST_P(Moe, ThreeHundredTimes) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  int devices = 0;
  cudaGetDeviceCount(&devices);
  const int n = std::max(2, devices);
  const moe::Shape shape = shape_of(n, 256, 8, 7168, 4096);
  const moe::Routing routing = uniform_routing(shape, 4096, 5);
  ThreadGpus gpus(n);
  const char* const said = std::getenv("SHMEMCTL_MOE_REPEATS");
  const int repeats = said != nullptr ? std::atoi(said) : 300;
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
                         if (i % 4 == 0)
                           rank.notify();
                         // Ranks need not take the same number of multiprocessors.
                         const int sms = 8 + (i * 7 + pe.job.pe * 17) % 40;
                         rank.dispatch({sms, 7, 2, i % 2});
                         must(rank.check_rows(), where);
                         rank.experts();
                         dawdle(random);
                         rank.poison_results();
                         rank.combine({sms, 14, 2}, 3584);
                         must(rank.check_combined(), where);
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

TEST(MoeNotify, TheHostHearsOfTotals) {
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
  const moe::Shape shape = shape_of(3, 12, 4, 2048, 100);
  const moe::Routing routing = uniform_routing(shape, 91, 5);
  for (const int op : {0, 1, 2}) { // notify, dispatch, combine
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
            return;
          if (op == 0)
            rank.notify();
          else if (op == 1)
            rank.dispatch({4, 4, 2, 1});
          else
            rank.combine({4, 4, 2}, 2048);
          pe.synchronize();
        },
        0.3);
    for (const int pe : {0, 2})
      EXPECT_NE(said.find("PE " + std::to_string(pe) + " waited for PE 1:"), std::string::npos)
          << op << ": " << said;
  }
}

struct LatencyCase {
  moe::Shape shape;
  Tuning tuning;
  std::int32_t chunk_bytes;
};
const std::vector<LatencyCase> latency_cases = {
    {shape_of(2, 256, 8, 7168, 128), {60, 8, 1}, 1792},
    {shape_of(4, 256, 8, 7168, 60), {24, 4, 2}, 1024},
    {shape_of(4, 64, 16, 2048, 128), {20, 4, 1}, 1024},
    {shape_of(3, 12, 1, 4096, 300), {7, 3, 2}, 8192},
    {shape_of(4, 32, 5, 2176, 77), {1, 1, 1}, 1040},
    {shape_of(1, 16, 4, 4096, 16), {5, 2, 2}, 2048},
};

void latency_round_trip(MoeLatencyRank& rank, const LatencyCase& one, bool apart,
                        const std::string& where) {
  const int sms = 132 / rank.pe().device_share() / 2;
  rank.poison();
  if (apart) {
    rank.dispatch(Halves::send, sms);
    rank.dispatch(Halves::receive, sms);
  } else {
    rank.dispatch(Halves::both, sms);
  }
  must(rank.check_rows(), where);
  rank.experts();
  rank.poison_results();
  if (apart)
    rank.combine(one.tuning, one.chunk_bytes, Halves::send);
  rank.combine(one.tuning, one.chunk_bytes, apart ? Halves::receive : Halves::both);
  must(rank.check_combined(), where);
  rank.pe().barrier();
}

class MoeLowLatency : public testing::TestWithParam<std::tuple<Scales, Combine>> {};
std::string name_of(const testing::TestParamInfo<std::tuple<Scales, Combine>>& info) {
  const char* const scales[] = {"Bf16", "Fp8", "Fp8Powers", "Fp8Ue8m0"};
  return std::string(scales[static_cast<int>(std::get<0>(info.param))]) +
         (std::get<1>(info.param) == Combine::weighted ? "Weighted" : "Partial");
}
INSTANTIATE_TEST_SUITE_P(Formats, MoeLowLatency,
                         testing::Combine(testing::Values(Scales::none, Scales::float32,
                                                          Scales::power, Scales::ue8m0),
                                          testing::Values(Combine::weighted, Combine::partial)),
                         name_of);

TEST_P(MoeLowLatency, EveryBitOfEveryRow) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  const auto [scales, combine] = GetParam();
  for (const LatencyCase& one : latency_cases)
    for (const NamedRouting& routing : all_routings(one.shape)) {
      const std::string where = std::to_string(one.shape.n_ranks) + " ranks, hidden " +
                                std::to_string(one.shape.hidden) + ", " + routing.name;
      ThreadGpus gpus(one.shape.n_ranks);
      ASSERT_EQ(gpus.run(MoeLatencyRank::heap_bytes(one.shape, scales, combine),
                         [&, scales = scales, combine = combine](ThreadGpu& pe) {
                           MoeLatencyRank rank(pe, one.shape, scales, routing.routing, combine);
                           pe.barrier();
                           for (int i = 0; i < 5; ++i)
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
  for (const Combine combine : {Combine::weighted, Combine::partial}) {
    ThreadGpus gpus(2);
    ASSERT_EQ(gpus.run(MoeLatencyRank::heap_bytes(one.shape, Scales::float32, combine),
                       [&](ThreadGpu& pe) {
                         MoeLatencyRank rank(pe, one.shape, Scales::float32, routing, combine);
                         std::mt19937 random(static_cast<unsigned>(pe.job.pe));
                         pe.barrier();
                         for (int i = 0; i < 300; ++i) {
                           rank.poison();
                           dawdle(random);
                           for (int burst = 0; burst <= i % 4; ++burst) {
                             rank.dispatch();
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

TEST(MoeLowLatency, ADeadRankIsMaskedAndTheRestGoOn) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  const moe::Shape shape = shape_of(3, 12, 4, 2048, 64);
  const moe::Routing routing = uniform_routing(shape, 64, 5);
  ThreadGpus gpus(3);
  ASSERT_EQ(
      gpus.run(
          MoeLatencyRank::heap_bytes(shape, Scales::float32, Combine::partial),
          [&](ThreadGpu& pe) {
            MoeLatencyRank rank(pe, shape, Scales::float32, routing, Combine::partial);
            pe.barrier();
            rank.dispatch(Halves::both, 20);
            must(rank.check_rows(), "while all live");
            pe.barrier();
            if (pe.job.pe == 1)
              return;
            for (int i = 0; i < 3; ++i) {
              rank.dispatch(Halves::both, 20);
              rank.combine({8, 4, 1}, 1024);
            }
            pe.synchronize();
            const moe::LowLatencyCells cells = rank.cells();
            for (int other = 0; other < 3; ++other)
              if ((cells.masked[other] != 0) != (other == 1))
                throw std::runtime_error("mask of rank " + std::to_string(other));
            if (cells.wait_ns[0][1] < 100000000)
              throw std::runtime_error("the wait for rank 1 is not counted");
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

} // namespace
} // namespace shmemctl::test
