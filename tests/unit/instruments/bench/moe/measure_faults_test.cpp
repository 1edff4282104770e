// The measurement on threads: its findings, the ranks that it names, and how it separates skew.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <nlohmann/json.hpp>

#include "src/instruments/bench/moe/point.h"
#include "tests/unit/instruments/bench/moe/measured.h"

namespace shmemctl::test {
namespace {

using namespace moe;

TEST(MoeMeasureFaults, CorruptionOnOnePeIsReportedToAll) {
  Routing routing;
  const PointResult result = measured(moe_drive(3, 6, 2, 64, 5), effort_of(2), routing, 2);
  ASSERT_EQ(result.wrong.size(), 1U);
  EXPECT_NE(result.wrong[0].find("dispatch: rank 2, row"), std::string::npos) << result.wrong[0];
}

/// Wrong data is a result; the rest of a row is not taken for another row.
TEST(MoeMeasureFaults, MistakesInTheDataAreFoundAndEndNothing) {
  const MoeDrive high = moe_drive(4, 16, 4, 128, 24);
  MoeDrive nodes = high;
  nodes.setup.node_ranks = nodes.pes_per_node = 2;
  for (MoeDrive drive : {high, nodes, low_latency(high, Combine::weighted),
                         low_latency(high, Combine::partial), by_expert(high)})
    for (const auto kind : {Mutation::Kind::swapped_rows, Mutation::Kind::skipped_chunk,
                            Mutation::Kind::lost_row, Mutation::Kind::early_signal}) {
      drive.gated = kind == Mutation::Kind::early_signal;
      if (drive.gated && drive.pes_per_node > 0)
        continue; // no rank reaches a barrier before forwarded rows have arrived
      drive.mutation.kind = kind;
      drive.mutation.rank = 1;
      Effort effort = effort_of(drive.gated ? 0 : 2);
      effort.warmup = drive.gated ? 0 : 1;
      Routing routing;
      const PointResult result = measured(drive, effort, routing);
      EXPECT_TRUE(
          std::any_of(result.wrong.begin(), result.wrong.end(),
                      [](const std::string& wrong) { return wrong.find("dispatch: rank ") == 0; }))
          << describe(drive) << ", " << static_cast<int>(kind);
    }
}

/// Others wait 200 ms for it, which no scheduler explains away, in every kind of call; of two ranks
/// it is the rank as well, and not the way to it.
TEST(MoeMeasureFaults, AStragglerIsNamed) {
  for (const auto& [low, n] :
       {std::pair{false, 4}, std::pair{true, 4}, std::pair{false, 2}, std::pair{true, 2}}) {
    const int late = n - 2;
    MoeDrive drive = moe_drive(n, 16, 8, 64, 16);
    if (low)
      drive = low_latency(drive, Combine::partial);
    Effort effort = effort_of(5);
    effort.straggler = std::pair{late, 200'000.0};
    Routing routing;
    const PointResult result = measured(drive, effort, routing);
    for (const OperationResult& operation : result.operations) {
      const auto verdicts = judge_waits(
          operation.waits, *std::max_element(operation.total_us.begin(), operation.total_us.end()),
          operation.late);
      ASSERT_EQ(verdicts.size(), 1U)
          << to_string(operation.operation) << wait_text(operation.waits);
      EXPECT_EQ(verdicts[0].culprit, Culprit::rank);
      EXPECT_EQ(verdicts[0].awaited, late);
      EXPECT_GT(*std::max_element(operation.arrival_us.begin(), operation.arrival_us.end()),
                150'000);
    }
  }
}

/// In ordinary calls, in which no rank was to be absent.
TEST(MoeMeasureFaults, AMaskedRankIsNamedAndItsCallsHaveNoBandwidth) {
  MoeDrive drive = low_latency(moe_drive(3, 12, 4, 64, 8), Combine::weighted);
  // long enough that on a busy machine no other rank is masked
  drive.setup.rank_timeout_us = 500'000;
  Effort effort = effort_of(2);
  effort.straggler = std::pair{1, 1'500'000.0};
  Routing routing;
  const PointResult result = measured(drive, effort, routing);
  EXPECT_TRUE(result.wrong.empty());
  EXPECT_FALSE(result.calls) << "they moved less than the routing says";
  ASSERT_EQ(result.masked.size(), 3U);
  for (const std::size_t rank : {0U, 2U})
    EXPECT_EQ(std::count(result.masked[rank].begin(), result.masked[rank].end(), 1), 1) << rank;
  drive.setup.routing = &routing;
  const Point point{drive.setup, "host", "uniform", 8, {}, result};
  for (const ResultRow& row : rows_of(point)) {
    EXPECT_EQ(row.verified, Verified::passed);
    EXPECT_FALSE(row.bandwidth_GBps || row.wire_GBps || row.link_fraction) << row.case_name;
    if (row.params.at("phase") == "total" || row.params.at("phase") == "period") {
      EXPECT_NE(row.reason.find("PE 1 by PE 0"), std::string::npos) << row.reason;
    }
  }
  EXPECT_EQ(json_of(point).at("masked").size(), 3U);
  int named = 0;
  for (const Finding& finding : findings_of(point))
    if (finding.id == "moe-masked" && finding.subject == "PE 1") {
      EXPECT_EQ(finding.severity, Severity::warning);
      ++named;
    }
  EXPECT_EQ(named, 2);
}

/// Sends nothing; masks rank 0 in its `at`-th combine, in which some of that rank's data was used
/// and some was not, after a dispatch in which it took part.
class MaskingBackend : public CountedBackend {
public:
  explicit MaskingBackend(std::uint64_t at) : at_(at) {}
  Times combine() override {
    Times times = CountedBackend::combine();
    if (called.combines == at_)
      masked_ = {0};
    return times;
  }
  std::vector<std::int32_t> masked() override { return masked_; }
  std::optional<std::string> verify_dispatch() override {
    return called.combines == at_ ? std::optional<std::string>("rows of rank 0") : std::nullopt;
  }
  std::optional<std::string> verify_combine() override { return verify_dispatch(); }

private:
  std::uint64_t at_;
  std::vector<std::int32_t> masked_;
};

TEST(MoeMeasureFaults, WhatTheCallThatMasksLeavesIsNoCorruption) {
  CountedBackend counting;
  const int all = measured_alone(counting, effort_of(2), Mode::low_latency).verified_iterations;
  const std::uint64_t last = counting.called.combines, before_the_chain = last - 4 - 1;
  for (const std::uint64_t at : {std::uint64_t{1}, before_the_chain, last}) {
    MaskingBackend backend(at);
    const PointResult result = measured_alone(backend, effort_of(2), Mode::low_latency);
    EXPECT_TRUE(result.wrong.empty()) << at;
    EXPECT_EQ(result.masked, (Masked{{0}})) << at;
    EXPECT_EQ(result.verified_iterations, all - 1) << at;
  }
}

/// Leaves wrong data after its last pair, and not before.
class SpoilingBackend : public CountedBackend {
public:
  explicit SpoilingBackend(std::uint64_t from) : from_(from) {}
  std::optional<std::string> verify_dispatch() override {
    return called.combines >= from_ ? std::optional<std::string>("spoilt") : std::nullopt;
  }
  std::optional<std::string> verify_combine() override { return std::nullopt; }

private:
  const std::uint64_t from_;
};

/// A run that continues without a rank is verified twice: after the first pair, and after the last.
TEST(MoeMeasureFaults, CallsWithoutAMaskedRankAreVerifiedAtTheEnd) {
  Effort effort = effort_of(4);
  const auto looked = [&] {
    CountedBackend backend;
    const int verified = measured_alone(backend, effort, Mode::low_latency).verified_iterations;
    return std::pair{backend.called.combines, verified};
  };
  const auto [all_present, verified] = looked();
  effort.absent = 1;
  const auto [last, verified_without] = looked();
  EXPECT_EQ(verified_without, verified + 1);
  const std::uint64_t first_look = all_present + 1 + 3; // the masking pair, and pairs(1)
  for (const std::uint64_t from : {first_look, first_look + 1, last}) {
    SpoilingBackend backend(from);
    const PointResult result = measured_alone(backend, effort, Mode::low_latency);
    EXPECT_EQ(result.wrong, std::vector<std::string>{"dispatch: spoilt"}) << from;
  }
  SpoilingBackend well(last + 1);
  EXPECT_TRUE(measured_alone(well, effort, Mode::low_latency).wrong.empty());
}

/// In a low-latency dispatch, a source that begins late is skew; a source whose rows arrive late is
/// not.
TEST(MoeMeasureFaults, SkewIsApartFromTransfer) {
  // On a busy machine the two ranks begin, and a dispatch takes, a second more or less.
  constexpr double late_us = 2'000'000, enough_us = 1'000'000;
  MoeDrive drive = low_latency(moe_drive(2, 8, 2, 64, 8), Combine::weighted);
  const Routing routing = make_routing(drive.setup.shape, drive.routing);
  drive.setup.routing = &routing;
  TeamWorldOptions options;
  options.heap_bytes = host_backend_bytes(drive.setup) / 4096 * 4096 + 8192;
  for (const bool begins_late : {true, false})
    run_team_world(
        2,
        [&](TeamPe& me) {
          const auto backend = make_host_backend(*me.rma, me.heap, drive.setup);
          backend->poison();
          me.collectives->barrier(team_world);
          if (me.pe == 1) {
            if (!begins_late) // the rank announces itself, and delays its rows
              me.rma->put_value<std::uint64_t>(
                  me.at<std::uint64_t>(HostLayout(drive.setup).signals.ready) + 1, 1, 0);
            std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(late_us));
          }
          const Times times = backend->dispatch(false);
          if (me.pe == 0) {
            EXPECT_GT(begins_late ? times.arrival_us : times.transfer_us, enough_us);
            EXPECT_LT(begins_late ? times.transfer_us : times.arrival_us, late_us - enough_us);
            EXPECT_GT(times.wait_us[1], enough_us);
            EXPECT_EQ(times.begin_wait_us[1], times.arrival_us);
          }
          EXPECT_EQ(backend->verify_dispatch(), std::nullopt);
          me.collectives->barrier(team_world);
        },
        options);
}

} // namespace
} // namespace shmemctl::test
