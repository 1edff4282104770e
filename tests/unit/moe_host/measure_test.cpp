// The measurement on threads: what it counts, that it verifies, and whom it names.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include <nlohmann/json.hpp>

#include "reports/validate.h"
#include "src/bench/moe/measure.h"
#include "src/bench/moe/point.h"
#include "src/bench/moe/steps.h"
#include "tests/unit/moe_host/drive.h"

namespace shmemctl::test {
namespace {

using namespace moe;
using nlohmann::json;

/// Measures on threads; the result of PE 0. A gated mutation goes on when all others have looked at
/// what it left and come to the next meeting.
PointResult measured(MoeDrive drive, const Effort& effort, Routing& routing, int corrupt_pe = -1) {
  routing = make_routing(drive.setup.shape, drive.routing);
  drive.setup.routing = &routing;
  const int n = drive.setup.shape.n_ranks;
  std::vector<std::string> texts(static_cast<std::size_t>(n));
  std::vector<std::atomic<int>> met(static_cast<std::size_t>(n));
  PointResult result;
  TeamWorldOptions options;
  options.pes_per_node = drive.pes_per_node;
  options.heap_bytes = host_backend_bytes(drive.setup) / 4096 * 4096 + 8192;
  run_team_world(
      n,
      [&](TeamPe& me) {
        Mutation mutation = drive.mutation;
        if (drive.gated)
          mutation.gate = [&] {
            const int mine = met[static_cast<std::size_t>(me.pe)];
            me.rma->wait(
                [&] {
                  return std::count_if(met.begin(), met.end(),
                                       [&](const auto& of) { return of > mine; }) == n - 1;
                },
                "the test's gate");
          };
        const auto backend = make_host_backend(*me.rma, me.heap, drive.setup, mutation);
        const auto barrier = [&] {
          ++met[static_cast<std::size_t>(me.pe)];
          me.collectives->barrier(team_world);
        };
        JobRank rank;
        rank.pe = me.pe;
        rank.n_pes = n;
        rank.barrier = barrier;
        rank.gather = [&](const std::string& text) {
          texts[static_cast<std::size_t>(me.pe)] = text;
          barrier();
          std::vector<std::string> all = texts;
          barrier();
          return all;
        };
        Effort mine = effort;
        mine.corrupt = me.pe == corrupt_pe;
        const PointResult here = measure(*backend, drive.setup, mine, rank);
        if (me.pe == 0)
          result = here;
        barrier();
      },
      options);
  return result;
}

Effort effort_of(int iterations) {
  Effort effort;
  effort.iterations = iterations;
  effort.warmup = 1;
  return effort;
}

TEST(MoeMeasure, EveryOperationHasItsTimesAndIsVerified) {
  for (const bool low : {false, true}) {
    MoeDrive drive = moe_drive(4, 16, 4, 128, 16);
    if (low)
      drive = low_latency(drive, Combine::weighted);
    Routing routing;
    const PointResult result = measured(drive, effort_of(7), routing);
    EXPECT_TRUE(result.wrong.empty());
    EXPECT_EQ(result.verified_iterations, 3) << "the first, the last, and the last of the chain";
    ASSERT_EQ(result.operations.size(), low ? 2U : 3U);
    for (const OperationResult& operation : result.operations) {
      EXPECT_EQ(operation.total_us.size(), 7U);
      EXPECT_GT(operation.cold_us, 0);
      EXPECT_EQ(operation.waits.size(), 4U);
      for (std::size_t i = 0; i < 7; ++i) {
        EXPECT_GT(operation.total_us[i], 0);
        EXPECT_LE(operation.counts_us[i], operation.total_us[i]);
      }
    }
    EXPECT_EQ(result.period_us.size(), 7U);
  }
}

/// The tool's own delays, between nodes where puts come late and in any order, each call verified.
TEST(MoeMeasure, ThreeHundredTimesAcrossNodesWithRandomDelays) {
  MoeDrive handed_on = moe_drive(4, 16, 4, 128, 17);
  handed_on.pes_per_node = 2;
  handed_on.setup.node_ranks = 2;
  MoeDrive straight = handed_on;
  straight.setup.node_ranks = 4;
  straight.setup.node_of_rank = {0, 0, 1, 1};
  std::vector<MoeDrive> drives{handed_on, straight};
  for (const Combine combine : {Combine::weighted, Combine::partial})
    drives.push_back(low_latency(straight, combine));
  drives.push_back(by_expert(straight));
  Effort effort = effort_of(300);
  effort.verify_every = 1;
  effort.most_delay_us = 300;
  for (MoeDrive drive : drives) {
    drive.routing.uneven = true;
    drive.routing.masked_percent = 10;
    Routing routing;
    const PointResult result = measured(drive, effort, routing);
    EXPECT_TRUE(result.wrong.empty()) << describe(drive) << ": " << result.wrong.front();
    EXPECT_EQ(result.verified_iterations, 1 + 300 + 1) << describe(drive);
    EXPECT_EQ(result.period_us.size(), 300U);
  }
}

TEST(MoeMeasure, EachIterationCanBeVerified) {
  Effort effort = effort_of(6);
  effort.verify_every = 1;
  Routing routing;
  EXPECT_EQ(measured(moe_drive(2, 4, 2, 64, 5), effort, routing).verified_iterations, 1 + 6 + 1);
  effort.verify = false;
  EXPECT_EQ(measured(moe_drive(2, 4, 2, 64, 5), effort, routing).verified_iterations, 0);
}

/// Moves nothing, and says how often it was asked to. Chains two pairs more than it is asked for.
class CountedBackend : public Backend {
public:
  std::string name() const override { return "counted"; }
  std::vector<MemoryUse> memory() const override { return {}; }
  std::string window() const override { return ""; }
  void poison() override {}
  Times dispatch(bool) override {
    ++called.dispatches;
    return {};
  }
  void run_experts() override {}
  Times combine() override {
    ++called.combines;
    return {};
  }
  std::vector<double> chain(int pairs, const std::function<void()>& between) override {
    return Backend::chain(chained_pairs(pairs), between);
  }
  int chained_pairs(int pairs) const override { return pairs + 2; }
  std::optional<std::string> verify_dispatch() override { return std::nullopt; }
  std::optional<std::string> verify_combine() override { return std::nullopt; }
  void corrupt() override {}

  CallCount called;
};

/// Of one rank.
PointResult measured_alone(Backend& backend, const Effort& effort, Mode mode) {
  Setup setup;
  setup.mode = mode;
  JobRank rank;
  rank.barrier = [] {};
  rank.gather = [](const std::string& text) { return std::vector{text}; };
  return measure(backend, setup, effort, rank);
}

/// What NICs and NVLinks count is of all of them.
TEST(MoeMeasure, AllCallsAreCounted) {
  for (const Mode mode : {Mode::high_throughput, Mode::low_latency})
    for (const int every : {0, 1, 2})
      for (const bool verify : {false, true}) {
        CountedBackend backend;
        Effort effort = effort_of(5);
        effort.verify_every = every;
        effort.verify = verify;
        const PointResult result = measured_alone(backend, effort, mode);
        ASSERT_TRUE(result.calls);
        EXPECT_EQ(result.calls->dispatches, backend.called.dispatches);
        EXPECT_EQ(result.calls->combines, backend.called.combines);
        EXPECT_EQ(result.calls->combines, 1U + 1 + 5 + 7 + (verify ? 1 : 0))
            << "first, warm-up, timed, chained, and one more that is looked at";
      }
}

/// Each call takes its time.
class SlowBackend : public CountedBackend {
public:
  Times dispatch(bool cached) override {
    take();
    return CountedBackend::dispatch(cached);
  }
  Times combine() override {
    take();
    return CountedBackend::combine();
  }

  static constexpr std::chrono::milliseconds call_ms{30};
  int since_step = 0, most_since_step = 0;

private:
  void take() {
    std::this_thread::sleep_for(call_ms);
    most_since_step = std::max(most_since_step, ++since_step);
  }
};

/// Whoever watches takes what says nothing for what hangs: however many calls there are, not one
/// part of them is silent for much longer than a call takes.
TEST(MoeMeasure, WhatGoesOnSaysSo) {
  for (const std::optional<int> absent : {std::optional<int>(), std::optional<int>(1)}) {
    SlowBackend backend;
    moe::Setup setup;
    setup.mode = Mode::low_latency;
    Effort effort = effort_of(16);
    effort.warmup = 16;
    effort.absent = absent;
    JobRank rank;
    rank.barrier = [] {};
    rank.gather = [](const std::string& text) { return std::vector{text}; };
    rank.step = [&](const std::string&) { backend.since_step = 0; };
    measure(backend, setup, effort, rank);
    const auto calls = static_cast<int>(Steps::pause / SlowBackend::call_ms) + 1;
    EXPECT_LE(backend.most_since_step, calls + 2) << "a chain says it behind each pair";
  }
}

/// Nothing comes from this pair on.
class DeafBackend : public CountedBackend {
public:
  explicit DeafBackend(std::uint64_t last) : last_(last) {}
  void poison() override { holds_rows_ = false; }
  Times dispatch(bool cached) override {
    holds_rows_ = holds_rows_ || called.combines < last_;
    return CountedBackend::dispatch(cached);
  }
  std::optional<std::string> verify_dispatch() override {
    return holds_rows_ ? std::nullopt : std::optional<std::string>("no rows");
  }
  std::optional<std::string> verify_combine() override { return verify_dispatch(); }

private:
  const std::uint64_t last_;
  bool holds_rows_ = false;
};

/// All calls carry the same rows: those of an earlier one are not taken for those of the last.
TEST(MoeMeasure, AChainThatStopsBringingRowsIsFound) {
  CountedBackend counting;
  Effort effort = effort_of(4);
  measured_alone(counting, effort, Mode::low_latency);
  for (const std::uint64_t last : {counting.called.combines - 3, counting.called.combines - 5}) {
    DeafBackend backend(last);
    const PointResult result = measured_alone(backend, effort, Mode::low_latency);
    EXPECT_EQ(result.wrong, std::vector<std::string>{"dispatch: no rows"}) << last;
  }
  DeafBackend well(counting.called.combines);
  EXPECT_TRUE(measured_alone(well, effort, Mode::low_latency).wrong.empty());
}

TEST(MoeMeasure, CallsWithoutAllRanksAreNotTheRoutings) {
  CountedBackend backend;
  Effort effort = effort_of(2);
  effort.absent = 0;
  EXPECT_FALSE(measured_alone(backend, effort, Mode::low_latency).calls);
}

TEST(MoeMeasure, DamageOnOnePeIsSaidToAll) {
  Routing routing;
  const PointResult result = measured(moe_drive(3, 6, 2, 64, 5), effort_of(2), routing, 2);
  ASSERT_EQ(result.wrong.size(), 1U);
  EXPECT_NE(result.wrong[0].find("dispatch: rank 2, row"), std::string::npos) << result.wrong[0];
}

/// A mistake in the data is a result; what is left of a row is not taken for the row of another.
TEST(MoeMeasure, MistakesInTheDataAreFoundAndEndNothing) {
  const MoeDrive high = moe_drive(4, 16, 4, 128, 24);
  MoeDrive nodes = high;
  nodes.setup.node_ranks = nodes.pes_per_node = 2;
  for (MoeDrive drive : {high, nodes, low_latency(high, Combine::weighted),
                         low_latency(high, Combine::partial), by_expert(high)})
    for (const auto kind : {Mutation::Kind::swapped_rows, Mutation::Kind::skipped_chunk,
                            Mutation::Kind::lost_row, Mutation::Kind::early_signal}) {
      drive.gated = kind == Mutation::Kind::early_signal;
      if (drive.gated && drive.pes_per_node > 0)
        continue; // nobody comes to a meeting before what is handed on has come
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

/// Others wait 60 ms for it, which no scheduler explains away, in every kind of call; of two ranks
/// it is the rank as well, and not the way to it.
TEST(MoeMeasure, AStragglerIsNamed) {
  for (const auto& [low, n] :
       {std::pair{false, 4}, std::pair{true, 4}, std::pair{false, 2}, std::pair{true, 2}}) {
    const int late = n - 2;
    MoeDrive drive = moe_drive(n, 16, 8, 64, 16);
    if (low)
      drive = low_latency(drive, Combine::partial);
    Effort effort = effort_of(5);
    effort.straggler = std::pair{late, 60'000.0};
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
                45'000);
    }
  }
}

/// In ordinary calls, with nobody that was to stay away.
TEST(MoeMeasure, WhoeverIsMaskedIsNamedAndItsCallsHaveNoBandwidth) {
  MoeDrive drive = low_latency(moe_drive(3, 12, 4, 64, 8), Combine::weighted);
  drive.setup.patience_us = 50'000;
  Effort effort = effort_of(2);
  effort.straggler = std::pair{1, 400'000.0};
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

/// Sends nothing; masks rank 0 in its `at`-th combine, where some of what that one sent was taken
/// and some was not, after a dispatch that it came to.
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

TEST(MoeMeasure, WhatTheCallThatMasksLeavesIsNoCorruption) {
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

/// With all that an item can have.
Links some_links() {
  Links links;
  links.nics = {{"n1", "mlx5_0", 1, 4096}};
  GpuLinks gpu;
  gpu.ranks = {0};
  gpu.gpu = "0000:1a:00.0";
  gpu.limit = {478, "NVLink", 18};
  gpu.basis = "by the model";
  links.gpus = {gpu};
  const auto bytes = known<std::uint64_t>(1024, "test");
  const auto none = unknown<std::uint64_t>("it was reset");
  links.nvlinks = {{"n1", gpu.gpu, {0}, {{{0, bytes, none}}, bytes, none}},
                   {"n1", "0000:1b:00.0", {1}, {{}, none, none}}};
  return links;
}

TEST(MoeMeasure, TheReportOfAPointFollowsTheSchema) {
  const char* const backend_window = "a call, by some clock";
  for (const int node_ranks : {4, 2}) {
    MoeDrive drive = moe_drive(4, 16, 4, 128, 16);
    drive.setup.node_ranks = node_ranks;
    drive.pes_per_node = node_ranks;
    Routing routing;
    const PointResult result = measured(drive, effort_of(3), routing);
    drive.setup.routing = &routing;
    Point point{
        drive.setup, "host", "uniform", 16, {{"received rows", "ranks * max_tokens * row", 4096}},
        result};
    point.window = backend_window;
    point.links = some_links();
    point.settings.dispatch.chunk_rows = 16;
    if (node_ranks == 4) { // as kernels do
      point.of_dispatch = {{"dispatch", 10, 10}, {"pack", 264, 132}};
      point.of_combine = {{"combine", 24, 24}};
    }
    Report report;
    report.results = rows_of(point);
    report.moe.push_back(json_of(point));
    report.findings = findings_of(point);
    for (const SchemaViolation& violation : validate_report(to_json(report)))
      ADD_FAILURE() << violation.pointer << ": " << violation.message;
    for (const ResultRow& row : report.results)
      EXPECT_EQ(row.verified, Verified::passed) << row.case_name;
    EXPECT_EQ(report.moe[0].at("links").at(0).at("all_calls").at("counted_out_bytes"), 1024);
    EXPECT_EQ(report.moe[0].at("calls").at("combines"), result.calls.value().combines);
    EXPECT_EQ(report.moe[0].contains("launches"), node_ranks == 4);
    if (node_ranks == 4) {
      EXPECT_EQ(report.moe[0].at("launches").at("dispatch").at(1),
                (json{{"kernel", "pack"}, {"blocks", 264}, {"sms", 132}}));
      EXPECT_NE(text_of(point).find("launched: dispatch 10 blocks on 10 SMs at most; pack 264"),
                std::string::npos)
          << text_of(point);
    }
    const ResultRow& first = report.results.front();
    ASSERT_TRUE(first.bandwidth_GBps && first.wire_GBps);
    EXPECT_GT(*first.bandwidth_GBps, *first.wire_GBps) << "own rows are counted, and do not move";
    EXPECT_FALSE(text_of(point).empty());
  }
}

} // namespace
} // namespace shmemctl::test
