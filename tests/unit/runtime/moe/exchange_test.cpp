// What an exchange decides without a GPU: which jobs it refuses, by which kernels, and where its
// memory is.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/runtime/moe/exchange.h"
#include "tests/support/no_gpu.h"

namespace shmemctl::moe {
namespace {

std::string refusal(const test::NoGpu& gpu, const ExchangeConfig& config) {
  return exchange_cannot(gpu, config, choose_moe_path(config, gpu.paths));
}
std::optional<BrokenRule> broken_rule(const test::NoGpu& gpu, const ExchangeConfig& config) {
  return exchange_broken_rule(gpu, config, choose_moe_path(config, gpu.paths));
}
GpuSettings settings_for(const test::NoGpu& gpu, const ExchangeConfig& config) {
  return gpu_settings_of(gpu, config, choose_moe_path(config, gpu.paths));
}

ExchangeConfig some_setup(Mode mode, Format format, Combine combine) {
  ExchangeConfig setup;
  setup.shape.n_ranks = 2;
  setup.shape.n_experts = 16;
  setup.shape.top_k = 4;
  setup.shape.hidden = 2176;
  setup.shape.max_tokens = 37;
  setup.mode = mode;
  setup.format = format;
  setup.combine = combine;
  setup.node_ranks = 2;
  return setup;
}

/// All regions of a layout that are used, in order.
std::vector<GpuRegion> regions_of(const ExchangeLayout& lies) {
  std::vector<GpuRegion> all = {lies.flags,          lies.expert_count_flags, lies.outputs,
                                lies.output_weights, lies.output_rows,        lies.rails,
                                lies.counts_out,     lies.counts_in,          lies.row_signals,
                                lies.sum_signals,    lies.sent_row_signals,   lies.output_signals,
                                lies.cast_rows,      lies.cast_scales};
  for (const auto& more : {lies.received(), lies.sent()})
    for (const GpuRegion* region : more)
      all.push_back(*region);
  return all;
}
std::vector<GpuRegion> regions_of(const PlanLayout& lies) {
  std::vector<GpuRegion> all;
  for (const GpuRegion* region : lies.all())
    all.push_back(*region);
  return all;
}

void expect_apart(std::vector<GpuRegion> regions, std::size_t begin, std::size_t guard_bytes,
                  std::size_t size_bytes) {
  regions.erase(std::remove_if(regions.begin(), regions.end(),
                               [](const GpuRegion& region) { return region.size_bytes == 0; }),
                regions.end());
  std::sort(regions.begin(), regions.end(),
            [](const GpuRegion& a, const GpuRegion& b) { return a.offset < b.offset; });
  std::size_t end = begin;
  for (const GpuRegion& region : regions) {
    EXPECT_GE(region.offset, end + guard_bytes);
    EXPECT_EQ(region.offset % 256, 0U); // bulk copies need 16, the flags a line
    end = region.offset + region.size_bytes;
  }
  EXPECT_GE(size_bytes, end + guard_bytes);
}

TEST(MoeExchange, RegionsLieApartOnEveryPath) {
  for (const auto& [mode, combine] : {std::pair{Mode::high_throughput, Combine::rows},
                                      std::pair{Mode::low_latency, Combine::weighted},
                                      std::pair{Mode::low_latency, Combine::partial}})
    for (const Format format : {Format::bf16, Format::fp8})
      for (const std::int32_t node_ranks : {0, 1, 2})
        for (const std::size_t guard_bytes : {std::size_t{0}, std::size_t{1024}}) {
          ExchangeConfig config = some_setup(mode, format, combine);
          config.by_expert = combine == Combine::weighted;
          config.combined_weights = mode == Mode::high_throughput;
          const MoePath path{mode, node_ranks};
          const ExchangeLayout lies(config, path, guard_bytes);
          expect_apart(regions_of(lies), 0, guard_bytes, lies.size_bytes);
          std::uint64_t told = 0;
          for (const MemoryUse& use : lies.uses)
            told += use.size_bytes;
          EXPECT_LE(told, lies.size_bytes);
          const PlanLayout plan(config, path, guard_bytes);
          expect_apart(regions_of(plan), 0, guard_bytes, plan.size_bytes);
          // 2560 bytes further on: all offsets shift by that.
          const PlanLayout later(config, path, guard_bytes, 2560);
          expect_apart(regions_of(later), 2560, guard_bytes, later.size_bytes);
          EXPECT_EQ(later.counts.offset, plan.counts.offset + 2560);
          EXPECT_EQ(later.size_bytes, plan.size_bytes + 2560);
        }
}

/// The formulas of shmemctl/moe.h, without what is rounded up to the next region.
TEST(MoeExchange, MemoryIsThatOfTheFormulas) {
  ExchangeConfig config = some_setup(Mode::high_throughput, Format::fp8, Combine::rows);
  const std::size_t n = 2, tokens = 37, k = 4, hidden = 2176, experts = 8;
  const std::size_t record = (4 * (hidden / 128 + 2 * k + 2) + 15) / 16 * 16;
  const auto near = [](std::size_t found, std::size_t expected) {
    EXPECT_GE(found, expected);
    EXPECT_LE(found, expected + (1 << 16)) << expected;
  };
  const auto size = [&](std::int32_t node_ranks = 0) {
    return ExchangeLayout(config, {config.mode, node_ranks}).size_bytes;
  };
  near(size(), n * tokens * (hidden + record) + n * tokens * 2 * hidden);
  config.combined_weights = true;
  near(size(), n * tokens * (hidden + record) + n * tokens * (2 * hidden + 4 * k));
  config = some_setup(Mode::low_latency, Format::bf16, Combine::weighted);
  const std::size_t plain = (4 * (2 * k + 2) + 15) / 16 * 16, flags = sizeof(LowLatencyFlags);
  near(size(), flags + 2 * n * tokens * (2 * hidden + plain) + n * tokens * k * 2 * hidden);
  const std::size_t by_network = 2 * tokens * 2 * hidden + 2 * n * tokens * plain +
                                 n * tokens * k * 2 * hidden + n * tokens * (32 + 8 * k);
  near(size(1), size() + by_network);
  config.by_expert = true;
  config.shape.expert_alignment = 8;
  const std::size_t packed = n * tokens * k + experts * 7;
  near(size(), flags + 2 * n * tokens * (2 * hidden + plain) + packed * (4 * hidden + plain) +
                   4 * tokens * k);
  EXPECT_LE(PlanLayout(config, {config.mode, 0}).size_bytes, 4 * tokens * n + 4096);
}

TEST(MoeExchange, RefusesWhatKernelsCannotDo) {
  test::NoGpu gpu;
  gpu.described.name = "some GPU";
  gpu.described.multiprocessors = 132;
  gpu.described.pes_on_device = 2;
  gpu.paths = {{DevicePath::load_store, ""}, {DevicePath::load_store, ""}};
  auto setup = some_setup(Mode::high_throughput, Format::bf16, Combine::rows);
  EXPECT_EQ(refusal(gpu, setup), "");
  setup.combined_weights = true;
  EXPECT_EQ(refusal(gpu, setup), "");
  setup.mode = Mode::low_latency;
  EXPECT_NE(refusal(gpu, setup).find("does not send them back"), std::string::npos);
  setup = some_setup(Mode::high_throughput, Format::bf16, Combine::rows);
  gpu.paths[1] = {DevicePath::none, "no transport reaches it"};
  EXPECT_EQ(refusal(gpu, setup),
            "kernels cannot load from and store to PE 1: no transport reaches it");
  // Within a node, loads and stores; between nodes, any path.
  gpu.paths[1] = {DevicePath::proxy, "on another virtual node"};
  setup.node_ranks = 1;
  EXPECT_EQ(refusal(gpu, setup), "");
  gpu.paths[1] = {DevicePath::none, "no transport reaches it"};
  EXPECT_EQ(refusal(gpu, setup), "kernels cannot reach PE 1: no transport reaches it");
  gpu.paths = {{DevicePath::load_store, ""},
               {DevicePath::proxy, "as requested"},
               {DevicePath::proxy, ""},
               {DevicePath::proxy, ""}};
  setup.shape.n_ranks = 4;
  setup.node_ranks = 2;
  EXPECT_EQ(refusal(gpu, setup), "kernels cannot load from and store to PE 1: as requested");
  gpu.paths.assign(32, {DevicePath::load_store, ""});
  setup.shape.n_ranks = 32;
  for (const std::int32_t mates : {8, 1})
    EXPECT_EQ(refusal(gpu, (setup.node_ranks = mates, setup)), "") << mates;
}

TEST(MoeExchange, BrokenRulesNameTheNearestLegalValue) {
  test::NoGpu gpu;
  gpu.described.name = "some GPU";
  gpu.described.multiprocessors = 132;
  gpu.described.pes_on_device = 2;
  gpu.paths.assign(2, {DevicePath::load_store, ""});
  const auto expect_broken = [&](const ExchangeConfig& setup, const char* what, const char* words,
                                 const char* nearest) {
    const std::optional<BrokenRule> broken = broken_rule(gpu, setup);
    ASSERT_TRUE(broken) << words;
    EXPECT_EQ(broken->what, what);
    EXPECT_NE(broken->rule.find(words), std::string::npos) << broken->rule;
    EXPECT_EQ(broken->nearest, nearest);
    const Error error = error_of(*broken);
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(error.fix(), std::string("use the nearest legal value: ") + nearest);
  };
  auto setup = some_setup(Mode::high_throughput, Format::bf16, Combine::rows);
  setup.num_sms = 66;
  EXPECT_FALSE(broken_rule(gpu, setup));
  setup.num_sms = 67;
  expect_broken(setup, "num-sms", "66 at most, a PE's share of the some GPU", "66");
  setup.num_sms = 1;
  expect_broken(setup, "num-sms", "2 at least: the blocks of notify", "2");
  setup.mode = Mode::low_latency;
  expect_broken(setup, "num-sms", "2 at least: the blocks of a low-latency dispatch", "2");
  setup.mode = Mode::high_throughput;
  setup.node_ranks = 1; // over a network, where notify has one block
  EXPECT_FALSE(broken_rule(gpu, setup));
  setup = some_setup(Mode::low_latency, Format::bf16, Combine::weighted);
  setup.by_expert = true;
  setup.shape.n_experts = 8192;
  EXPECT_FALSE(broken_rule(gpu, setup));
  setup.shape.n_experts = 8194;
  expect_broken(setup, "num-experts", "4096 experts of a rank", "8192");
  setup.by_expert = false;
  setup.shape.max_tokens = 65535;
  EXPECT_FALSE(broken_rule(gpu, setup));
  EXPECT_EQ(rows_of_count(packed_count(256, 65535)), 65535);
  EXPECT_EQ(blocks_of_count(packed_count(256, 65535)), 256);
  EXPECT_EQ(refuse_tokens(65535), "");
  EXPECT_NE(refuse_tokens(65536), "");
  setup.shape.max_tokens = 65536;
  expect_broken(setup, "num-tokens", "16 bits", "65535");
  setup.mode = Mode::high_throughput;
  EXPECT_FALSE(broken_rule(gpu, setup));
  gpu.paths.assign(32, {DevicePath::load_store, ""});
  setup.shape.n_ranks = 32;
  setup.node_ranks = 16;
  expect_broken(setup, "PEs of a node", "with --flat (or node_ranks 0) they go straight", "8");
  setup.node_ranks = 32; // with --flat
  EXPECT_FALSE(broken_rule(gpu, setup));
}

/// Own choices and candidates fit, whatever they are computed from.
TEST(MoeExchange, RowsAndCountsThatABlockCannotHoldAreARule) {
  test::NoGpu gpu;
  gpu.described.multiprocessors = 132;
  for (const std::int32_t ranks : {1, 2, 8})
    for (const Format format : {Format::bf16, Format::fp8}) {
      gpu.paths.assign(static_cast<std::size_t>(ranks), {DevicePath::load_store, ""});
      auto setup = some_setup(Mode::high_throughput, format, Combine::rows);
      setup.shape.n_ranks = setup.node_ranks = ranks;
      setup.shape.hidden = 131072 * (format == Format::fp8 ? 2 : 1);
      const std::optional<BrokenRule> broken = broken_rule(gpu, setup);
      ASSERT_TRUE(broken) << ranks;
      EXPECT_EQ(broken->what, "hidden");
      EXPECT_NE(broken->rule.find("shared memory"), std::string::npos) << broken->rule;
      const std::int32_t step = format == Format::fp8 ? 128 : 8;
      setup.shape.hidden = std::stoi(broken->nearest);
      EXPECT_EQ(setup.shape.hidden % step, 0);
      EXPECT_GT(setup.shape.hidden, 90000) << "a block has 227 KiB";
      EXPECT_FALSE(broken_rule(gpu, setup));
      EXPECT_EQ(settings_for(gpu, setup).misfit(Direction::dispatch, {}), "");
      setup.shape.hidden += step;
      EXPECT_TRUE(broken_rule(gpu, setup)) << "it was not the largest";
      setup.mode = Mode::low_latency;
      EXPECT_FALSE(broken_rule(gpu, setup)) << "low latency holds no row in shared memory";
    }
  gpu.paths.assign(4, {DevicePath::load_store, ""});
  for (const std::int32_t mates : {4, 2, 1}) {
    auto setup = some_setup(Mode::high_throughput, Format::bf16, Combine::rows);
    setup.shape.n_ranks = 4;
    setup.node_ranks = mates;
    setup.shape.n_experts = 65536;
    const std::optional<BrokenRule> broken = broken_rule(gpu, setup);
    ASSERT_TRUE(broken) << mates;
    EXPECT_EQ(broken->what, "num-experts");
    setup.shape.n_experts = std::stoi(broken->nearest);
    EXPECT_FALSE(broken_rule(gpu, setup));
    EXPECT_EQ(setup.shape.n_experts % 4, 0);
    EXPECT_GE(setup.shape.n_experts, 56000);
    // As notify is launched, with what it declares beside.
    const InternodeShape crossing{setup.shape, setup.format, mates, 1};
    const std::int32_t words = mates == 4
                                   ? setup.shape.n_experts
                                   : internode_notify_words(crossing, min_internode_notify_threads);
    EXPECT_LE(static_cast<std::size_t>(words) * 4 + notify_own_shared_bytes, max_shared_bytes);
    setup.shape.n_experts += 4;
    EXPECT_TRUE(broken_rule(gpu, setup));
    setup.mode = Mode::low_latency;
    EXPECT_FALSE(broken_rule(gpu, setup)) << "nothing goes ahead there";
  }
}

TEST(MoeExchange, LowLatencyOverANetworkPacksToo) {
  test::NoGpu gpu;
  gpu.described.multiprocessors = 132;
  gpu.paths = {{DevicePath::load_store, ""}, {DevicePath::proxy, ""}};
  auto setup = some_setup(Mode::low_latency, Format::bf16, Combine::weighted);
  setup.by_expert = true;
  EXPECT_EQ(refusal(gpu, setup), "");
  const MoePath path = choose_moe_path(setup, gpu.paths);
  EXPECT_EQ(path.node_ranks, 1);
  const PlanLayout plan(setup, path);
  const Shape& shape = setup.shape;
  EXPECT_GE(plan.output_rows_by_slot.size_bytes,
            static_cast<std::size_t>(shape.max_rows() * shape.top_k) * sizeof(std::int32_t));
  EXPECT_LE(plan.output_rows_by_slot.offset + plan.output_rows_by_slot.size_bytes, plan.size_bytes);
}

TEST(MoeExchange, RowsGoStraightWhereOneNodeIsReachedByANetwork) {
  test::NoGpu gpu;
  gpu.paths = {{DevicePath::load_store, ""}, {DevicePath::load_store, ""}};
  auto setup = some_setup(Mode::high_throughput, Format::bf16, Combine::rows);
  EXPECT_EQ(choose_moe_path(setup, gpu.paths).node_ranks, 0);
  gpu.paths[1].path = DevicePath::ibgda;
  EXPECT_EQ(choose_moe_path(setup, gpu.paths).node_ranks, 1);
  setup.node_ranks = 1;
  EXPECT_EQ(choose_moe_path(setup, gpu.paths).node_ranks, 1);
  setup.shape.n_ranks = 4;
  setup.node_ranks = 2;
  EXPECT_EQ(choose_moe_path(setup, gpu.paths).node_ranks, 2);
}

TEST(MoeExchange, RowsGoStraightWhereADomainHasMoreRanksThanItsKernelsKnow) {
  test::NoGpu gpu;
  auto setup = some_setup(Mode::high_throughput, Format::bf16, Combine::rows);
  for (const std::int32_t ranks : {8, 9}) {
    gpu.paths.assign(static_cast<std::size_t>(ranks), {DevicePath::load_store, ""});
    setup.shape.n_ranks = setup.node_ranks = ranks;
    EXPECT_EQ(choose_moe_path(setup, gpu.paths).node_ranks, ranks == 8 ? 0 : 1);
    EXPECT_EQ(refusal(gpu, setup), "");
  }
}

TEST(MoeExchange, MemoryBetweenNodes) {
  auto setup = some_setup(Mode::high_throughput, Format::fp8, Combine::rows);
  setup.shape.n_ranks = 4;
  const MoePath path{Mode::high_throughput, 2};
  const ExchangeLayout lies(setup, path);
  const auto tokens = static_cast<std::size_t>(setup.shape.max_tokens);
  // A word for each chunk, however few rows it has.
  EXPECT_GE(lies.row_signals.size_bytes, 8U * tokens);
  EXPECT_GE(lies.sum_signals.size_bytes, 8U * tokens);
  EXPECT_EQ(lies.rows_in.size_bytes,
            tokens * static_cast<std::size_t>(internode_shape(setup, path).crossing_bytes()));
  EXPECT_EQ(lies.sums_in.size_bytes, tokens * static_cast<std::size_t>(setup.shape.hidden) * 2);
  setup.combined_weights = true;
  EXPECT_EQ(ExchangeLayout(setup, path).sums_in.size_bytes,
            tokens * (static_cast<std::size_t>(setup.shape.hidden) * 2 + 16));
}

/// Each rank computes the others' addresses as they compute their own.
TEST(MoeHybridShape, PlacesOfNodesAndChunks) {
  for (const std::int32_t nodes : {2, 3, 5}) {
    InternodeShape shape{};
    shape.shape.n_ranks = nodes * 2;
    shape.shape.max_tokens = 33;
    shape.node_ranks = 2;
    shape.chunk_rows = 16;
    EXPECT_EQ(shape.chunks(), 3);
    EXPECT_EQ(shape.chunks_of(32), 2);
    for (std::int32_t at = 0; at < nodes; ++at)
      for (std::int32_t output_row = 0; output_row < shape.other_nodes(); ++output_row) {
        const std::int32_t node = shape.peer_node(at, output_row);
        EXPECT_NE(node, at);
        EXPECT_EQ(shape.peer_index(at, node), output_row);
        EXPECT_LT(shape.peer_index(node, at), shape.other_nodes());
      }
  }
}

} // namespace
} // namespace shmemctl::moe
