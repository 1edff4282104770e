// The engine over real jobs of processes.
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/fork_job.h"
#include "tests/unit/instruments/bench/scripted_case.h"

namespace shmemctl::bench {
namespace {

using shmemctl::test::ForkJob;
using shmemctl::test::PeResult;
using shmemctl::test::run_fork_job;
using test::ScriptedRun;

/// Everything of the rows and findings that must be exact.
std::string told(const ScriptedRun& run) {
  std::string text;
  for (const ResultRow& row : run.rows) {
    const Stats stats = row.stats.value_or(Stats{});
    const auto number = [](const std::optional<double>& value) {
      return value ? fmt::format("{:.6g}", *value) : "-";
    };
    text += fmt::format("n {} min {} p50 {} max {} GB/s {} Mop/s {} {} {}\n", stats.n,
                        number(stats.min), number(stats.p50), number(stats.max),
                        number(row.bandwidth_GBps), number(row.rate_Mops), to_string(row.verified),
                        row.reason);
  }
  for (const Finding& finding : run.own_findings())
    text += finding.id + ": " + finding.message + "\n";
  return text;
}

/// PE p takes p + 1 ms for an operation.
ScriptedRun by_pe(int pe) {
  ScriptedRun run;
  run.script.cost_ns = [pe](std::uint64_t) { return (pe + 1) * std::int64_t{1000000}; };
  run.script.bytes = 6000000;
  run.metric = Metric::bandwidth;
  run.effort.iterations = 50;
  run.effort.warmup = 1;
  return run;
}

TEST(EngineJob, SamplesOfAllPesAreMerged) {
  const std::vector<PeResult> results = run_fork_job({.n_pes = 3, .body = [](Runtime& runtime) {
                                                        ScriptedRun run = by_pe(runtime.pe());
                                                        run.run(runtime);
                                                        return told(run);
                                                      }});
  for (const PeResult& result : results)
    EXPECT_EQ(result.exit_code, 0) << result.text;
  // 6 MB in 1, 2 and 3 ms: 6 + 3 + 2 GB/s; 1000 + 500 + 333 operations per second.
  EXPECT_EQ(results[0].text, "n 150 min 1000 p50 2000 max 3000 GB/s 11 Mop/s 0.00183333 passed \n");
  EXPECT_EQ(results[1].text, "");
}

TEST(EngineJob, OnlyThosePesCountThatMeasure) {
  const auto body = [](Runtime& runtime) {
    ScriptedRun run = by_pe(runtime.pe());
    run.script.measures = [](int pe) { return pe == 2; };
    run.run(runtime);
    return told(run);
  };
  EXPECT_EQ(run_fork_job({.n_pes = 3, .body = body})[0].text,
            "n 50 min 3000 p50 3000 max 3000 GB/s 2 Mop/s 0.000333333 passed \n");
}

TEST(EngineJob, TheBatchIsTheOneOfTheFastestPe) {
  const auto body = [](Runtime& runtime) {
    ScriptedRun run;
    const int pe = runtime.pe();
    run.script.cost_ns = [pe](std::uint64_t) { return pe == 1 ? 100 : 10000; };
    run.run(runtime);
    return std::to_string(run.rows.empty() ? 0 : run.rows[0].params.value("batch", 0)) + " " +
           std::to_string(run.script.iterated);
  };
  const std::vector<PeResult> results = run_fork_job({.n_pes = 2, .body = body});
  EXPECT_EQ(results[0].text.substr(0, 4), "256 ");
  // All PEs got the same numbers.
  EXPECT_EQ(results[0].text.substr(4), results[1].text.substr(2));
}

TEST(EngineJob, AWrongByteIsFoundAtItsPeAndOffset) {
  const auto body = [](Runtime& runtime) {
    ScriptedRun run = by_pe(runtime.pe());
    run.script.verify = [](int pe) {
      return pe == 2 ? std::optional(WrongByte{2, 4711, 1, 2, "x"}) : std::nullopt;
    };
    run.run(runtime);
    const bool failed = any_failed(runtime, run.rows);
    return std::string(failed ? "failed " : "passed ") + told(run);
  };
  const std::vector<PeResult> results = run_fork_job({.n_pes = 3, .body = body});
  EXPECT_NE(results[0].text.find("failed PE 2, offset 4711: expected 0x01, found 0x02 (x)"),
            std::string::npos)
      << results[0].text;
  EXPECT_NE(results[0].text.find("bench-corrupt"), std::string::npos);
  for (const PeResult& result : results)
    EXPECT_EQ(result.text.substr(0, 6), "failed");
}

TEST(EngineJob, APeThatIsKilledInTheSweepLeavesTheRowsBefore) {
  const auto body = [](Runtime& runtime) {
    ScriptedRun run = by_pe(runtime.pe());
    run.points.assign(4, Point(run.points.front()));
    run.points[2].size_bytes = 4096;
    std::size_t rows = 0;
    run.callbacks.done = [&](const std::vector<ResultRow>& so_far) { rows = so_far.size(); };
    run.script.before_iterate = [&](const Point& point) {
      if (point.size_bytes == 4096 && runtime.pe() == 1)
        ::raise(SIGKILL);
    };
    try {
      run.run(runtime);
    } catch (const Error& error) {
      throw Error(error.code(), std::to_string(rows) + " rows", "keep", error.message(),
                  error.fix());
    }
    return std::string("not killed");
  };
  const std::vector<PeResult> results = run_fork_job({.n_pes = 3, .body = body});
  EXPECT_EQ(results[1].exit_code, 128 + SIGKILL);
  EXPECT_EQ(results[0].exit_code, 3) << results[0].text;
  EXPECT_NE(results[0].text.find("2 rows"), std::string::npos) << results[0].text;
  EXPECT_NE(results[0].text.find("PE 1"), std::string::npos) << results[0].text;
  EXPECT_EQ(results[2].exit_code, 3) << results[2].text;
}

/// PE 0 puts into PE 1.
class PutOnce final : public Case {
public:
  std::size_t bytes_needed(const Runtime&, const Point& point) const override {
    return point.size_bytes;
  }
  void prepare(Arena& arena) override {
    runtime_ = &arena.runtime;
    target_ = arena.memory;
    source_.resize(arena.size_bytes);
  }
  bool measures() const override { return runtime_->pe() == 0; }
  void iterate(std::uint64_t first, std::uint64_t count) override {
    for (std::uint64_t i = first; measures() && i < first + count; ++i) {
      std::memcpy(source_.data(), &i, sizeof i);
      runtime_->rma().put(target_, source_.data(), source_.size(), 1);
      runtime_->rma().quiet();
    }
  }
  std::uint64_t bytes_per_iteration() const override { return source_.size(); }
  bool reference(std::uint64_t, std::uint64_t count) override {
    void* peer = runtime_->rma().direct(target_, 1);
    for (std::uint64_t i = 0; measures() && i < count; ++i)
      std::memcpy(peer, source_.data(), source_.size());
    return peer != nullptr;
  }
  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    std::uint64_t found = 0;
    std::memcpy(&found, target_, sizeof found);
    if (runtime_->pe() != 1 || found == iterations - 1)
      return std::nullopt;
    return WrongByte{1, 0, iterations - 1, found, "word"};
  }

private:
  Runtime* runtime_ = nullptr;
  std::byte* target_ = nullptr;
  std::vector<std::byte> source_;
};

TEST(EngineJob, PutsByTheRealClock) {
  const auto body = [](Runtime& runtime) {
    BenchCase bench_case;
    bench_case.info.name = "put";
    bench_case.info.traffics = {Traffic::pair};
    bench_case.make = [](const Point&) { return std::make_unique<PutOnce>(); };
    Sweep sweep;
    sweep.min_bytes = 8;
    sweep.step_factor = 1 << 17;
    sweep.max_bytes = 1 << 20;
    Findings findings;
    const std::vector<ResultRow> rows = measure_case(
        runtime, bench_case, points_of(bench_case.info, sweep, 2), {}, 1, {}, findings);
    for (const ResultRow& row : rows) {
      const Stats& stats = row.stats.value();
      if (row.verified != Verified::passed || !(*stats.min > 0) || *stats.min > *stats.p50 ||
          *stats.p50 > *stats.max || !row.link_fraction || !row.bandwidth_GBps)
        throw Error(ExitCode::finding, row.params.dump(), "measure", row.reason, "-");
    }
    return std::to_string(rows.size());
  };
  const std::vector<PeResult> results = run_fork_job({.n_pes = 2, .body = body});
  EXPECT_EQ(results[0].exit_code, 0) << results[0].text;
  EXPECT_EQ(results[1].exit_code, 0) << results[1].text;
  EXPECT_EQ(results[0].text, "2");
}

} // namespace
} // namespace shmemctl::bench
