// The engine over a real job of processes.
#include <cstring>
#include <gtest/gtest.h>

#include "src/bench/engine.h"
#include "tests/support/fork_job.h"

namespace shmemctl::bench {
namespace {

using test::ForkJob;
using test::PeResult;
using test::run_fork_job;

/// PE 0 puts a word into PE 1.
class PutWord final : public Case {
public:
  std::size_t bytes_needed(const Runtime&, const Point& point) const override {
    return point.size_bytes;
  }
  void prepare(Arena& arena) override {
    runtime_ = &arena.runtime;
    target_ = arena.memory;
    size_bytes_ = arena.size_bytes;
    source_.resize(size_bytes_);
  }
  bool measures() const override { return runtime_->pe() == 0; }
  void iterate(std::uint64_t first, std::uint64_t count) override {
    if (!measures())
      return;
    for (std::uint64_t i = first; i < first + count; ++i) {
      std::memcpy(source_.data(), &i, std::min(sizeof i, size_bytes_));
      runtime_->rma().put(target_, source_.data(), size_bytes_, 1);
      runtime_->rma().quiet();
    }
  }
  std::uint64_t bytes_per_iteration() const override { return size_bytes_; }
  bool reference(std::uint64_t, std::uint64_t count) override {
    void* peer = runtime_->rma().direct(target_, 1);
    for (std::uint64_t i = 0; i < count && measures(); ++i)
      std::memcpy(peer, source_.data(), size_bytes_);
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
  std::size_t size_bytes_ = 8;
  std::vector<std::byte> source_;
};

CaseEntry put_word() {
  CaseEntry entry;
  entry.info.name = "put-word";
  entry.info.traffics = {Traffic::pair};
  entry.make = [](const Point&) { return std::make_unique<PutWord>(); };
  return entry;
}

TEST(EngineJob, MeasuresAPutBetweenTwoProcesses) {
  ForkJob job{.n_pes = 2};
  job.body = [](Runtime& runtime) {
    const CaseEntry entry = put_word();
    Sweep sweep;
    sweep.min_bytes = 8;
    sweep.max_bytes = 1 << 20;
    sweep.step_factor = 1 << 17;
    Findings findings;
    Effort effort;
    effort.budget_s = 0.1;
    const std::vector<ResultRow> rows = measure_case(
        runtime, entry, points_of(entry.info, sweep, runtime.n_pes()), effort, 1, {}, findings);
    if (any_failed(runtime, rows))
      return std::string("failed");
    std::string text;
    for (const ResultRow& row : rows) {
      text += row.params.dump() + " n " + std::to_string(row.stats->n) + " p50 " +
              std::to_string(row.stats->p50.value_or(-1)) + " max " +
              std::to_string(row.stats->max.value_or(-1)) + " GB/s " +
              std::to_string(row.bandwidth_GBps.value_or(-1)) + " share " +
              std::to_string(row.link_fraction.value_or(-1)) + " " + to_string(row.verified) + "\n";
    }
    for (const Finding& finding : findings)
      text += finding.id + ": " + finding.subject + ": " + finding.message + "\n";
    return text;
  };
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 0) << result.text;
    std::printf("%s\n", result.text.c_str());
  }
}

} // namespace
} // namespace shmemctl::bench
