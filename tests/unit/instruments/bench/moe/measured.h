// The measurement on threads, or of one rank whose backend moves nothing.
#pragma once

#include <algorithm>
#include <atomic>

#include "src/instruments/bench/moe/measure.h"
#include "tests/unit/instruments/bench/moe/drive.h"

namespace shmemctl::test {

/// Measures on threads; the result of PE 0. A gated mutation continues when all others have checked
/// what it left and reached the next barrier.
inline moe::PointResult measured(MoeDrive drive, const moe::Effort& effort, moe::Routing& routing,
                                 int corrupt_pe = -1) {
  routing = moe::make_routing(drive.setup.shape, drive.routing);
  drive.setup.routing = &routing;
  const int n = drive.setup.shape.n_ranks;
  std::vector<std::string> texts(static_cast<std::size_t>(n));
  std::vector<std::atomic<int>> met(static_cast<std::size_t>(n));
  moe::PointResult result;
  TeamWorldOptions options;
  options.pes_per_node = drive.pes_per_node;
  options.heap_bytes = moe::host_backend_bytes(drive.setup) / 4096 * 4096 + 8192;
  run_team_world(
      n,
      [&](TeamPe& me) {
        moe::Mutation mutation = drive.mutation;
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
        const auto backend = moe::make_host_backend(*me.rma, me.heap, drive.setup, mutation);
        const auto barrier = [&] {
          ++met[static_cast<std::size_t>(me.pe)];
          me.collectives->barrier(team_world);
        };
        moe::JobRank rank;
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
        moe::Effort mine = effort;
        mine.corrupt = me.pe == corrupt_pe;
        const moe::PointResult here = moe::measure(*backend, drive.setup, mine, rank);
        if (me.pe == 0)
          result = here;
        barrier();
      },
      options);
  return result;
}

inline moe::Effort effort_of(int iterations) {
  moe::Effort effort;
  effort.iterations = iterations;
  effort.warmup = 1;
  return effort;
}

/// Moves nothing, and counts its calls. Chains two more pairs than requested.
class CountedBackend : public moe::Backend {
public:
  std::string name() const override { return "counted"; }
  std::vector<moe::MemoryUse> memory() const override { return {}; }
  std::string window() const override { return ""; }
  void poison() override {}
  moe::Times dispatch(bool) override {
    ++called.dispatches;
    return {};
  }
  void run_experts() override {}
  moe::Times combine() override {
    ++called.combines;
    return {};
  }
  std::vector<double> chain(int pairs, const std::function<void()>& between) override {
    return moe::Backend::chain(chained_pairs(pairs), between);
  }
  int chained_pairs(int pairs) const override { return pairs + 2; }
  std::optional<std::string> verify_dispatch() override { return std::nullopt; }
  std::optional<std::string> verify_combine() override { return std::nullopt; }
  void corrupt() override {}

  moe::CallCount called;
};

/// Measures one rank alone.
inline moe::PointResult measured_alone(moe::Backend& backend, const moe::Effort& effort,
                                       moe::Mode mode) {
  moe::Setup setup;
  setup.mode = mode;
  moe::JobRank rank;
  rank.barrier = [] {};
  rank.gather = [](const std::string& text) { return std::vector{text}; };
  return moe::measure(backend, setup, effort, rank);
}

} // namespace shmemctl::test
