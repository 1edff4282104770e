// Settings of the kernels: every candidate fits, and an invalid one is refused with the reason.
#include <gtest/gtest.h>

#include <set>

#include "kernels/moe/combine_reduce.h"
#include "kernels/moe/low_latency.h"
#include "src/runtime/moe/gpu_settings.h"

namespace shmemctl::moe {
namespace {

ExchangeConfig setup_of(Mode mode, Combine combine, std::int32_t n_ranks, std::int32_t hidden) {
  ExchangeConfig setup;
  setup.mode = mode;
  setup.combine = combine;
  setup.shape.n_ranks = n_ranks;
  setup.shape.n_experts = 256;
  setup.shape.top_k = 8;
  setup.shape.hidden = hidden;
  setup.shape.max_tokens = 128;
  return setup;
}

constexpr Direction directions[] = {Direction::dispatch, Direction::combine};

Settings with(std::int32_t sms, const std::string& rest = "") {
  Settings settings = rest.empty() ? Settings{} : parse_settings("--x", rest);
  settings.sms = sms;
  return settings;
}

TEST(MoeGpuSettings, WhateverIsTriedFitsAndIsThereOnce) {
  for (const auto& [mode, combine] : {std::pair{Mode::high_throughput, Combine::rows},
                                      std::pair{Mode::low_latency, Combine::weighted},
                                      std::pair{Mode::low_latency, Combine::partial}})
    for (const std::int32_t n_ranks : {1, 2, 4, 8})
      for (const std::int32_t hidden : {128, 2176, 7168, 16384})
        for (const int max_sms : {1, 33, 132})
          for (const Format format : {Format::bf16, Format::fp8}) {
            ExchangeConfig setup = setup_of(mode, combine, n_ranks, hidden);
            setup.format = format;
            const GpuSettings gpu{setup, max_sms};
            for (const Direction direction : directions) {
              EXPECT_EQ(gpu.misfit(direction, {}), "") << hidden << to_string(direction);
              std::set<std::string> seen;
              for (const Settings& one : gpu.candidates(direction)) {
                EXPECT_EQ(gpu.misfit(direction, one), "");
                EXPECT_EQ(gpu.complete(direction, one), one);
                EXPECT_TRUE(seen.insert(to_text(one)).second) << to_text(one);
              }
              // Without candidates, only the own choice is measured: there are very few SMs.
              EXPECT_TRUE(max_sms < 8 || !seen.empty()) << hidden << to_string(direction);
            }
          }
}

TEST(MoeGpuSettings, ItsOwnChoiceIsThatOfTheKernels) {
  const ExchangeConfig setup = setup_of(Mode::high_throughput, Combine::rows, 2, 7168);
  const GpuSettings gpu{setup, 132};
  EXPECT_EQ(to_text(gpu.complete(Direction::dispatch, {})),
            "sms=24,warps=7,stages=2,kept=1,self_sms=8");
  EXPECT_EQ(to_text(gpu.complete(Direction::combine, {})),
            "sms=24,warps=16,stages=2,chunk_bytes=3584");
  // Given settings determine the others.
  EXPECT_EQ(to_text(gpu.complete(Direction::dispatch, with(12, "stages=5"))),
            "sms=12,warps=3,stages=5,kept=1,self_sms=0");
  EXPECT_EQ(to_text(gpu.complete(Direction::dispatch, with(24, "in_place=1"))),
            "sms=24,warps=7,stages=2,kept=1,self_sms=0,in_place=1");
  EXPECT_EQ(to_text(gpu.complete(Direction::combine, with(12, "chunk_bytes=14336,warps=2"))),
            "sms=12,warps=2,stages=4,chunk_bytes=14336");
}

/// Rows of any length: also if whole rows fill a block's shared memory except for a few bytes.
TEST(MoeGpuSettings, OwnChoicesFitRowsOfAnyLength) {
  int held = 0;
  for (const std::int32_t n_ranks : {1, 2, 8})
    for (std::int32_t hidden = 8; hidden < 120000; hidden += 8) {
      const ExchangeConfig setup = setup_of(Mode::high_throughput, Combine::rows, n_ranks, hidden);
      const GpuSettings gpu{setup, 132};
      if (!gpu.holds_a_row())
        continue;
      ++held;
      ASSERT_EQ(gpu.misfit(Direction::dispatch, {}), "") << hidden;
      ASSERT_EQ(gpu.misfit(Direction::combine, {}), "") << hidden;
    }
  EXPECT_GT(held, 30000);
}

TEST(MoeGpuSettings, KernelsThatReachANetworkHaveSmsAndChunksOfRows) {
  for (const auto& [mode, combine] : {std::pair{Mode::high_throughput, Combine::rows},
                                      std::pair{Mode::low_latency, Combine::weighted}})
    for (const std::int32_t node_ranks : {1, 2})
      for (const std::int32_t tokens : {0, 5, 128}) {
        ExchangeConfig setup = setup_of(mode, combine, 4, 7168);
        setup.shape.max_tokens = tokens;
        const GpuSettings gpu{setup, 132, node_ranks};
        const bool chunks = mode == Mode::high_throughput;
        const std::int32_t own = tokens == 0 ? 1 : tokens < 16 ? 5 : 16;
        for (const Direction direction : directions) {
          EXPECT_EQ(gpu.complete(direction, {}).chunk_rows,
                    chunks ? std::optional(own) : std::nullopt);
          EXPECT_FALSE(gpu.complete(direction, {}).warps);
          EXPECT_EQ(gpu.misfit(direction, {}), "");
          std::set<std::string> seen;
          std::set<std::int32_t> rows;
          for (const Settings& one : gpu.candidates(direction)) {
            EXPECT_EQ(gpu.misfit(direction, one), "");
            EXPECT_TRUE(seen.insert(to_text(one)).second) << to_text(one);
            rows.insert(one.chunk_rows.value_or(0));
          }
          EXPECT_EQ(rows.size(), !chunks || tokens == 0 ? 1U : tokens == 5 ? 2U : 5U);
          EXPECT_NE(gpu.misfit(direction, parse_settings("--x", "warps=2")).find("no warps here"),
                    std::string::npos);
        }
      }
  ExchangeConfig setup = setup_of(Mode::high_throughput, Combine::rows, 4, 1 << 20);
  setup.shape.max_tokens = 4096;
  const GpuSettings gpu{setup, 132, 2};
  const auto problem = [&](const char* given) {
    return gpu.misfit(Direction::combine, parse_settings("--x", given));
  };
  EXPECT_EQ(problem("chunk_rows=511"), "");
  EXPECT_EQ(problem("chunk_rows=512"), "chunk_rows 512 is not from 1 to 511: take 511")
      << "a message has 2^30 bytes at most, of which each row takes a little more than 2^21";
  EXPECT_EQ(problem("chunk_rows=0"), "chunk_rows 0 is not from 1 to 511: take 1");
}

TEST(MoeGpuSettings, LaunchesAreWhatTheLaunchersTake) {
  const auto text = [](const std::vector<KernelLaunch>& launches) {
    std::string words;
    for (const KernelLaunch& one : launches)
      words += one.kernel + " " + std::to_string(one.blocks) + "/" + std::to_string(one.sms) + " ";
    return words;
  };
  ExchangeConfig setup = setup_of(Mode::high_throughput, Combine::rows, 2, 7168);
  constexpr std::int32_t tokens = 9;
  const auto of = [&](Direction direction, const char* given, std::int32_t node_ranks = 0) {
    return text(GpuSettings{setup, 132, node_ranks}.launches(
        direction, *given == 0 ? Settings{} : parse_settings("--x", given), 132, tokens));
  };
  EXPECT_EQ(of(Direction::dispatch, ""), "notify 2/2 dispatch 24/24 ");
  EXPECT_EQ(of(Direction::combine, "sms=7"), "combine 7/7 ");
  EXPECT_EQ(of(Direction::dispatch, "", 1), "notify 1/1 dispatch 24/24 ");
  setup.mode = Mode::low_latency;
  setup.combine = Combine::weighted;
  EXPECT_EQ(of(Direction::dispatch, ""), "dispatch 10/10 ") << "a block for each token, and one";
  EXPECT_EQ(of(Direction::dispatch, "sms=4"), "dispatch 4/4 ");
  EXPECT_EQ(of(Direction::dispatch, "sms=2"), "dispatch 2/2 ");
  setup.by_expert = true;
  setup.format = Format::fp8;
  EXPECT_EQ(of(Direction::dispatch, "sms=16"), "dispatch 10/10 pack 16/16 ");
  EXPECT_EQ(of(Direction::dispatch, "sms=131", 2), "cast 131/131 dispatch 10/10 pack 131/131 ");
  EXPECT_EQ(of(Direction::dispatch, ""), "dispatch 10/10 pack 264/132 ");
  setup.num_sms = 6;
  EXPECT_EQ(of(Direction::dispatch, ""), "dispatch 6/6 pack 6/6 ");
}

/// For every number of tokens and multiprocessors: no more blocks than these, and all parts are
/// covered.
TEST(MoeGpuSettings, ALowLatencyDispatchTakesNoMoreThanItMay) {
  for (const int sms : {2, 3, 17, 132, 257, 400})
    for (const std::int32_t tokens : {0, 1, 2, 16, 131, 132, 300, 65535}) {
      const DispatchBlocks both = dispatch_blocks(tokens, sms, Phases::both);
      EXPECT_LE(both.all(), sms);
      EXPECT_GE(both.senders, 1);
      EXPECT_LE(both.senders, LowLatencyFlags::max_blocks);
      EXPECT_LE(both.senders, std::max(1, tokens));
      const DispatchBlocks send = dispatch_blocks(tokens, sms, Phases::send);
      EXPECT_EQ(send.senders, both.senders) << "receivers count them";
      EXPECT_EQ(send.receiving, 0);
      EXPECT_EQ(dispatch_blocks(tokens, sms, Phases::receive).all(), 1);
    }
  EXPECT_NE(refuse_sms(1), "");
  EXPECT_EQ(refuse_sms(2), "");
}

TEST(MoeGpuSettings, NumSmsIsKept) {
  ExchangeConfig setup = setup_of(Mode::high_throughput, Combine::rows, 2, 7168);
  setup.num_sms = 10;
  const GpuSettings gpu{setup, 132};
  for (const Direction direction : directions)
    for (const Settings& one : gpu.candidates(direction))
      EXPECT_EQ(one.sms, 10);
  EXPECT_NE(gpu.misfit(Direction::dispatch, with(12)).find("num-sms 10"), std::string::npos);
}

TEST(MoeGpuSettings, WhatDoesNotFitSaysWhich) {
  const ExchangeConfig many = setup_of(Mode::high_throughput, Combine::rows, 2, 7168);
  const ExchangeConfig is_low_latency = setup_of(Mode::low_latency, Combine::weighted, 2, 7168);
  struct Case {
    const ExchangeConfig& setup;
    Direction direction;
    const char* given;
    const char* expected;
  };
  for (const Case& one : std::initializer_list<Case>{
           {many, Direction::dispatch, "sms=0", "sms 0 is not from 1 to 132"},
           {many, Direction::dispatch, "sms=133", "from 1 to 132"},
           {many, Direction::dispatch, "warps=33", "warps 33 is not from 1 to 32"},
           {many, Direction::dispatch, "stages=0", "stages 0"},
           {many, Direction::dispatch, "stages=2,kept=2", "kept 2 is not from 0 to 1"},
           {many, Direction::dispatch, "sms=8,self_sms=8", "self_sms 8 is not from 0 to 7"},
           {many, Direction::dispatch, "in_place=2", "in_place 2 is not from 0 to 1: take 1"},
           {many, Direction::dispatch, "sms=24,in_place=1,self_sms=3", "take self_sms=0"},
           {many, Direction::combine, "in_place=1", "there is no in_place here"},
           {is_low_latency, Direction::dispatch, "in_place=1", "there is no in_place here"},
           {many, Direction::dispatch, "warps=8,stages=2", "warps times stages may be 15"},
           {many, Direction::dispatch, "chunk_bytes=16", "there is no chunk_bytes here"},
           {many, Direction::combine, "kept=1", "there is no kept here"},
           {many, Direction::combine, "warps=17", "warps 17 is not from 1 to 16"},
           {many, Direction::combine, "chunk_bytes=100", "take 96"},
           {many, Direction::combine, "chunk_bytes=14352", "from 16 to 14336"},
           {many, Direction::combine, "warps=16,stages=4,chunk_bytes=7168", "shared memory"},
           {many, Direction::combine, "warps=16,stages=4,chunk_bytes=7168",
            "take warps=16,stages=1,chunk_bytes=7168"},
           {many, Direction::combine, "warps=16,stages=4,chunk_bytes=14336",
            "take warps=8,stages=1,chunk_bytes=14336"},
           {is_low_latency, Direction::dispatch, "sms=1", "sms 1 is not from 2 to 132: take 2"},
           {is_low_latency, Direction::dispatch, "warps=2", "there is no warps here"},
           {is_low_latency, Direction::combine, "warps=8,stages=4,chunk_bytes=1024",
            "shared memory"}}) {
    const std::string problem =
        GpuSettings{one.setup, 132}.misfit(one.direction, parse_settings("--x", one.given));
    EXPECT_NE(problem.find(one.expected), std::string::npos) << one.given << ": " << problem;
  }
}

} // namespace
} // namespace shmemctl::moe
