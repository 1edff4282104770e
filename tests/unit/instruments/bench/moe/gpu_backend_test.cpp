// What the GPU backend decides without a GPU: its memory layout, and which points it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "src/instruments/bench/moe/gpu_backend.h"
#include "src/instruments/bench/moe/gpu_layout.h"
#include "src/instruments/bench/moe/request.h"
#include "tests/support/no_gpu.h"

namespace shmemctl::moe {
namespace {

std::optional<BrokenRule> broken_rule(const test::NoGpu& gpu, const ExchangeConfig& config) {
  return exchange_broken_rule(gpu, config, choose_moe_path(config, gpu.paths));
}
GpuSettings settings_for(const test::NoGpu& gpu, const ExchangeConfig& config) {
  return gpu_settings_of(gpu, config, choose_moe_path(config, gpu.paths));
}

TEST(MoeGpuBackend, TokensLieBehindTheExchangeAndItsPlan) {
  for (const Mode mode : {Mode::high_throughput, Mode::low_latency})
    for (const Format format : {Format::bf16, Format::fp8})
      for (const std::int32_t node_ranks : {0, 2}) {
        moe::Setup setup;
        setup.shape = {2, 16, 4, 2176, 37};
        setup.mode = mode;
        setup.format = format;
        setup.combine = mode == Mode::low_latency ? Combine::weighted : Combine::rows;
        setup.bias = setup.combined_weights = mode == Mode::high_throughput;
        const MoePath path{mode, node_ranks};
        const GpuLayout lies(setup, path);
        // The exchange is given the plan's memory, and computes the same addresses.
        EXPECT_EQ(lies.plan_begin % 256, 0U);
        EXPECT_GE(lies.plan_begin, lies.exchange.size_bytes);
        const PlanLayout own(setup, path, gpu_guard_bytes);
        EXPECT_EQ(lies.plan.counts.offset, lies.plan_begin + own.counts.offset);
        EXPECT_EQ(lies.plan.size_bytes, lies.plan_begin + own.size_bytes);
        const TokenLayout& tokens = lies.tokens;
        std::size_t end = lies.plan.size_bytes - gpu_guard_bytes;
        for (const GpuRegion& region :
             {tokens.values, tokens.casts, tokens.scales, tokens.experts, tokens.weights,
              tokens.bias, tokens.results, tokens.combined_weights, tokens.wrong}) {
          EXPECT_GE(region.offset, end + gpu_guard_bytes);
          EXPECT_EQ(region.offset % 256, 0U);
          end = region.offset + region.size_bytes;
        }
        EXPECT_GE(lies.size_bytes(), end + gpu_guard_bytes);
        EXPECT_EQ(gpu_backend_bytes(setup, path), lies.size_bytes());
      }
}

/// Depends only on the setups of a sweep and the GPU: an invalid point is detected before the first
/// one is measured.
TEST(MoeGpuBackend, AnInvalidLaterPointIsDetectedWithoutMemory) {
  test::NoGpu gpu;
  gpu.described.multiprocessors = 132;
  gpu.paths.assign(4, {DevicePath::load_store, ""});
  struct Case {
    std::function<void(Request&)> sweep;
    std::int32_t node_ranks;
    Direction direction;
    const char* given;
    const char* problem;
  };
  for (const Case& one : std::initializer_list<Case>{
           {[](Request& r) { r.hidden = "2048,512"; }, 4, Direction::combine, "chunk_bytes=2048",
            "chunk_bytes 2048 is not from 16 to 1024: take 1024"},
           {[](Request& r) { r.hidden = "2048,14336"; }, 4, Direction::dispatch, "warps=8,stages=2",
            "warps times stages may be 7"},
           {[](Request& r) { r.num_sms = "8,24"; }, 4, Direction::dispatch, "sms=8",
            "sms 8 is not --num-sms 24"},
           {[](Request& r) { r.mode = "ll", r.top_k = "4,16"; }, 4, Direction::combine,
            "warps=14,stages=1,chunk_bytes=3072", "take warps=4,stages=1,chunk_bytes=3072"},
           {[](Request& r) { r.tokens = "64,20"; }, 2, Direction::dispatch, "chunk_rows=32",
            "chunk_rows 32 is not from 1 to 20: take 20"}}) {
    Request request;
    request.num_sms = "0";
    one.sweep(request);
    std::vector<PointRequest> points = points_of(request, std::nullopt, 4, one.node_ranks);
    ASSERT_EQ(points.size(), 2U);
    const auto misfit = [&](const PointRequest& point) {
      EXPECT_FALSE(broken_rule(gpu, point.setup));
      return settings_for(gpu, point.setup).misfit(one.direction, parse_settings("--x", one.given));
    };
    EXPECT_EQ(misfit(points[0]), "") << one.given;
    EXPECT_NE(misfit(points[1]).find(one.problem), std::string::npos)
        << one.given << ": " << misfit(points[1]);
  }
}

/// The traffic of a chain, with which counters are compared.
TEST(MoeGpuBackend, AChainIsOfAtLeastWhatIsAskedFor) {
  EXPECT_EQ(chain_batches(0).pairs(), 0);
  EXPECT_EQ(chain_batches(5).pairs(), 5);
  EXPECT_EQ(chain_batches(20).batches, 8);
  EXPECT_EQ(chain_batches(20).pairs(), 24);
  for (int pairs = 1; pairs < 200; ++pairs) {
    const ChainBatches batches = chain_batches(pairs);
    EXPECT_GE(batches.pairs(), pairs);
    EXPECT_LT(batches.pairs() - batches.batches, pairs);
    EXPECT_LE(batches.each, 16) << "a deadline bounds the wait for a batch";
  }
}

} // namespace
} // namespace shmemctl::moe
