// The parameters of a point's rows, and its memory and traffic as reported.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/instruments/bench/moe/gpu_layout.h"
#include "src/instruments/bench/moe/point.h"
#include "src/instruments/bench/moe/summary.h"
#include "src/instruments/bench/moe/traffic.h"
#include "tests/unit/instruments/bench/moe/drive.h"

namespace shmemctl::test {
namespace {

using namespace moe;
using nlohmann::json;

/// `report diff` and `report check` join rows by their parameters: every different request is a
/// different measurement.
TEST(MoePoint, WhatIsAskedForOtherwiseHasOtherParameters) {
  MoeDrive drive = moe_drive(4, 16, 4, 128, 16);
  const Routing routing = make_routing(drive.setup.shape, drive.routing);
  drive.setup.routing = &routing;
  PointResult result;
  result.period_us = {1};
  moe::Setup setup = drive.setup;
  Point point{setup, "host", "uniform", 16, {}, result};
  std::vector<json> all;
  const auto add = [&] {
    all.push_back(rows_of(point).back().params);
    setup = drive.setup;
    point.drawn = {};
    point.max_delay_us = 0;
    point.straggler.reset();
    point.absent.reset();
    point.recorded = false;
    setup.routing = &routing;
  };
  add();
  setup.seed = 2, add();
  setup.bias = true, add();
  setup.combined_weights = true, add();
  setup.format = Format::fp8, add();
  setup.format = Format::fp8, setup.power_scales = true, add();
  setup.rank_timeout_us = 100, add();
  setup.shape.expert_alignment = 16, add();
  setup.node_ranks = 2, add();
  setup.node_of_rank = {0, 0, 1, 1}, add(); // --flat
  setup.num_sms = 8, add();
  setup.mode = Mode::low_latency, setup.combine = Combine::weighted, add();
  setup.mode = Mode::low_latency, setup.combine = Combine::partial, add();
  setup.by_expert = true, add();
  point.drawn.uneven = true, add();
  point.drawn.fewer_by_rank = true, add();
  point.drawn.masked_percent = 5, add();
  point.drawn.kind = RoutingKind::grouped, add();
  point.drawn.kind = RoutingKind::grouped, point.drawn.groups = 4, add();
  point.drawn.kind = RoutingKind::grouped, point.drawn.top_groups = 4, add();
  point.max_delay_us = 7, add();
  point.straggler = std::pair{1, 5.0}, add();
  point.absent = 0, add();
  point.absent = 1, add();
  point.recorded = true, add(); // of the same name each time
  Routing other = routing;
  other[3].experts.back() = no_expert;
  point.recorded = true, setup.routing = &other, add();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_NE(all[i], all[j]) << i << " and " << j;
  EXPECT_EQ(all[8].at("nodes"), 2);
  EXPECT_EQ(all[9].at("nodes"), 2);
  EXPECT_EQ(all[9].at("flat"), true);
  EXPECT_EQ(all[0].at("ranks"), 4);
}

/// On a machine that is busy otherwise, or has fewer cores than PEs, waits show which PE had a
/// core.
TEST(MoePoint, NobodyIsSlowWhereOthersHeldTheCores) {
  MoeDrive drive = moe_drive(4, 16, 4, 128, 16);
  const Routing routing = make_routing(drive.setup.shape, drive.routing);
  drive.setup.routing = &routing;
  PointResult result;
  result.period_us = {1000};
  OperationResult dispatch;
  dispatch.total_us = dispatch.counts_us = dispatch.transfer_us = dispatch.arrival_us = {500};
  dispatch.waits.assign(4, std::vector<double>(4, 10));
  for (std::size_t pe = 0; pe < 4; ++pe)
    dispatch.waits[pe][2] = pe == 2 ? 0 : 400;
  result.operations = {dispatch};
  Point point{drive.setup, "host", "uniform", 16, {}, result};
  ASSERT_EQ(verdicts_of(point, dispatch).size(), 1U);
  EXPECT_EQ(summary_of(point, rows_of(point)).bounded_by.find("dispatch: PE 2 is slow"), 0U);
  const Finding busy{"bench-interference", Severity::warning, "moe", "PE 1 on CPU 1: it waited 98%",
                     "measure on a machine that does nothing else"};
  for (std::optional<Finding> Point::*why : {&Point::disturbed, &Point::oversubscribed}) {
    Point noisy{drive.setup, "host", "uniform", 16, {}, result};
    noisy.*why = busy;
    EXPECT_TRUE(verdicts_of(noisy, dispatch).empty());
    EXPECT_TRUE(findings_of(noisy).empty());
    const Summary summary = summary_of(noisy, rows_of(noisy));
    EXPECT_NE(summary.bounded_by.find(busy.message), std::string::npos) << summary.bounded_by;
    EXPECT_EQ(summary.to_try, busy.fix);
    // A requested delay is found all the same.
    noisy.straggler = std::pair{2, 400.0};
    EXPECT_EQ(verdicts_of(noisy, dispatch).size(), 1U);
  }
}

TEST(MoeMemory, ReturnedWeightsAreInTheFormula) {
  MoeDrive drive = moe_drive(4, 16, 3, 128, 16);
  const Routing routing = make_routing(drive.setup.shape, drive.routing);
  drive.setup.routing = &routing;
  drive.setup.node_ranks = 2;
  for (const bool home : {false, true}) {
    drive.setup.combined_weights = home;
    const std::string row = home ? "(hidden * 2 + topk * 4, rounded up to 16)" : "hidden * 2";
    const std::uint64_t row_bytes = 256 + (home ? 16 : 0);
    int of_rows = 0;
    for (const MemoryUse& use : HostLayout(drive.setup).uses) {
      const bool by_rank = use.formula == "ranks * max_tokens * " + row;
      if (!by_rank && use.formula != "nodes * max_tokens * " + row)
        continue;
      ++of_rows;
      EXPECT_EQ(use.size_bytes, (by_rank ? 4U : 2U) * 16 * row_bytes) << use.what;
    }
    EXPECT_EQ(of_rows, 4) << "results, rows that come back, and both sums";
  }
}

TEST(MoeTraffic, AScaleHasTheBytesThatItIsCarriedWith) {
  MoeDrive drive = moe_drive(2, 4, 1, 1024, 1);
  const Routing routing{{1, {2}}, {1, {}}};
  drive.setup.routing = &routing;
  drive.setup.format = Format::fp8;
  const auto sent_bytes = [&] { return dispatch_traffic(drive.setup).sent_bytes[0]; };
  EXPECT_EQ(sent_bytes(), 1024U + 8 * 4);
  drive.setup.power_scales = true;
  drive.setup.scale_bytes = scale_bytes_of(drive.setup);
  EXPECT_EQ(sent_bytes(), 1024U + 8 * 4) << "high throughput carries powers of two as floats";
  drive.setup.mode = Mode::low_latency;
  drive.setup.combine = Combine::weighted;
  drive.setup.scale_bytes = scale_bytes_of(drive.setup);
  EXPECT_EQ(sent_bytes(), 1024U + 8);
  drive.setup.format = Format::bf16;
  EXPECT_EQ(sent_bytes(), 2048U);
}

TEST(MoeTraffic, IsWhatTheRoutingSays) {
  MoeDrive drive = moe_drive(4, 8, 2, 128, 4);
  // Token 0 to ranks 0 and 2, token 1 twice to rank 3, token 2 nowhere; others send nothing.
  const Routing routing{{2, {0, 5, 6, 7, -1, -1}}, {2, {}}, {2, {}}, {2, {}}};
  drive.setup.routing = &routing;
  const std::uint64_t row = 256;
  Traffic traffic = dispatch_traffic(drive.setup);
  EXPECT_EQ(traffic.logical_bytes, (std::vector<std::uint64_t>{row, 0, row, row}));
  EXPECT_EQ(traffic.sent_bytes, (std::vector<std::uint64_t>{2 * row, 0, 0, 0}));
  EXPECT_EQ(traffic.crossing_bytes, (std::vector<std::uint64_t>{0, 0, 0, 0}));
  // both tokens cross as one row each to rank 2, which keeps one of the rows
  drive.setup.node_ranks = 2;
  traffic = dispatch_traffic(drive.setup);
  EXPECT_EQ(traffic.logical_bytes, (std::vector<std::uint64_t>{row, 0, row, row}));
  EXPECT_EQ(traffic.sent_bytes, (std::vector<std::uint64_t>{2 * row, 0, row, 0}));
  EXPECT_EQ(traffic.crossing_bytes, (std::vector<std::uint64_t>{2 * row, 0, 0, 0}));
  Traffic back = combine_traffic(drive.setup);
  EXPECT_EQ(back.sent_bytes, (std::vector<std::uint64_t>{0, 0, 2 * row, row}));
  EXPECT_EQ(back.crossing_bytes, (std::vector<std::uint64_t>{0, 0, 2 * row, 0}));
  drive.setup.node_ranks = 4; // directly between nodes, with ranks in round-robin order
  drive.setup.node_of_rank = {0, 1, 0, 1};
  traffic = dispatch_traffic(drive.setup);
  EXPECT_EQ(traffic.sent_bytes, (std::vector<std::uint64_t>{2 * row, 0, 0, 0}));
  EXPECT_EQ(traffic.crossing_bytes, (std::vector<std::uint64_t>{row, 0, 0, 0}));
  back = combine_traffic(drive.setup);
  EXPECT_EQ(back.crossing_bytes, (std::vector<std::uint64_t>{0, 0, 0, row}));
  drive.setup.node_of_rank.clear();
  drive.setup.mode = Mode::low_latency;
  drive.setup.combine = Combine::weighted; // a row for each choice comes back
  EXPECT_EQ(dispatch_traffic(drive.setup).logical_bytes,
            (std::vector<std::uint64_t>{row, 0, row, 2 * row}));
  back = combine_traffic(drive.setup);
  EXPECT_EQ(back.sent_bytes, (std::vector<std::uint64_t>{0, 0, row, 2 * row}));
}

} // namespace
} // namespace shmemctl::test
