// The measurement on threads: what it counts, and that it verifies.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <nlohmann/json.hpp>

#include "reports/validate.h"
#include "src/instruments/bench/moe/measure.h"
#include "src/instruments/bench/moe/point.h"
#include "tests/unit/instruments/bench/moe/measured.h"

namespace shmemctl::test {
namespace {

using namespace moe;
using nlohmann::json;

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

/// What caches hold is dropped before the meeting, and nothing lies between the alignment
/// and the call.
TEST(MoeMeasure, CachesAreFlushedBeforeTheMeetingAndCallsAlignedBehindIt) {
  class Recorded : public CountedBackend {
  public:
    explicit Recorded(std::string& steps) : steps_(steps) {}
    Times dispatch(bool cached) override {
      steps_ += 'D';
      return CountedBackend::dispatch(cached);
    }
    Times combine() override {
      steps_ += 'C';
      return CountedBackend::combine();
    }
    std::vector<double> chain(int, const std::function<void()>&) override { return {}; }
    int chained_pairs(int) const override { return 0; }

  private:
    std::string& steps_;
  };
  std::string steps;
  Recorded backend(steps);
  moe::Setup setup;
  setup.mode = Mode::low_latency;
  JobRank rank;
  rank.barrier = [&] { steps += 'b'; };
  rank.flush = [&] { steps += 'f'; };
  rank.align = [&] { steps += 'a'; };
  rank.gather = [](const std::string& text) { return std::vector{text}; };
  Effort effort = effort_of(2);
  effort.warmup = 0;
  effort.verify = false;
  measure(backend, setup, effort, rank);
  // The first call and two timed ones of each, and the meeting before calls in turn.
  EXPECT_EQ(steps, "fbaDfbaCfbaDfbaCfbaDfbaCb");
}

TEST(MoeMeasure, EveryRowThatCallsWereMadeForHasTheirTimeOnce) {
  for (const bool low : {false, true}) {
    MoeDrive drive = moe_drive(4, 16, 4, 128, 16);
    if (low)
      drive = low_latency(drive, Combine::weighted);
    Routing routing;
    const auto begin = std::chrono::steady_clock::now();
    const PointResult result = measured(drive, effort_of(5), routing);
    const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
    drive.setup.routing = &routing;
    double sum_s = 0;
    int totals = 0;
    for (const ResultRow& row : rows_of(Point{drive.setup, "host", "uniform", 16, {}, result})) {
      const std::string phase = row.params.value("phase", "");
      const bool has = phase == "total" || phase == "send" || phase == "period";
      EXPECT_EQ(row.time_s.has_value(), has) << row.case_name << " " << phase;
      sum_s += row.time_s.value_or(0);
      totals += phase == "total";
    }
    EXPECT_EQ(totals, low ? 2 : 3);
    EXPECT_GT(sum_s, 0);
    EXPECT_LE(sum_s, whole.count());
  }
}

/// The tool's own delays, between nodes whose puts arrive late and in any order, each call
/// verified.
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
  effort.max_delay_us = 300;
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

/// What NICs and NVLinks count is the total of all.
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

/// Each call takes time.
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
  int since_step = 0, max_since_step = 0;

private:
  void take() {
    std::this_thread::sleep_for(call_ms);
    max_since_step = std::max(max_since_step, ++since_step);
  }
};

/// An observer takes silence for a hang: however many calls there are, no part of them is silent
/// for much longer than a call takes.
TEST(MoeMeasure, ProgressIsPrinted) {
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
    const auto calls = static_cast<int>(Progress::pause / SlowBackend::call_ms) + 1;
    EXPECT_LE(backend.max_since_step, calls + 2) << "a chain says it behind each pair";
  }
}

/// No data arrives from this pair on.
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

/// All calls carry the same rows: those of an earlier call are not taken for those of the last.
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

/// Masks these ranks when it is told that one has left.
class LeftBackend : public CountedBackend {
public:
  explicit LeftBackend(std::vector<std::int32_t> masks) : masks_(std::move(masks)) {}
  std::vector<std::int32_t> masked() override { return masks_; }

private:
  std::vector<std::int32_t> masks_;
};

TEST(MoeMeasure, TheLineAboutCallsWithoutARankFitsWhatHappened) {
  const auto line_of = [](std::vector<std::int32_t> masks) {
    LeftBackend backend(std::move(masks));
    moe::Setup setup;
    setup.mode = Mode::low_latency;
    Effort effort = effort_of(4);
    effort.absent = 1;
    JobRank rank;
    rank.barrier = [] {};
    rank.gather = [](const std::string& text) { return std::vector{text}; };
    std::string line;
    rank.print_line = [&](const std::string& text) { line = text; };
    measure(backend, setup, effort, rank);
    return line;
  };
  EXPECT_EQ(line_of({1}),
            "PE 0 has masked PE 1; 6 dispatches and combines ran without it, verified")
      << "the backend chains two more pairs than requested";
  EXPECT_EQ(line_of({1, 2}),
            "PE 0 has masked PE 1, 2; 6 dispatches and combines ran without them, verified");
  EXPECT_EQ(line_of({}),
            "PE 0 has masked no PE; 6 dispatches and combines ran after PE 1 left, verified");
}

/// With all members that an item can have.
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
