// A clock that is stopped, and a case that advances it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/options.h"
#include "src/instruments/bench/engine.h"

namespace shmemctl::bench::test {

class ManualClock final : public Clock {
public:
  std::int64_t now_ns() const override { return now_; }
  std::string name() const override { return "manual"; }
  void advance(std::int64_t ns) { now_ += ns; }

private:
  std::int64_t now_ = 0;
};

/// The behaviour of the case, and a record of its calls.
struct Script {
  std::function<std::int64_t(std::uint64_t number)> cost_ns = [](std::uint64_t) { return 1000; };
  std::function<std::int64_t(std::uint64_t number)> reference_ns; ///< empty: no reference
  /// How long its iterations took according to the case's own clock; empty: it has none.
  std::function<double(std::uint64_t count)> own_duration_ns;
  std::optional<TimerQuality> own_timer;
  std::uint64_t bytes = 0, operations = 1, multiple = 1;
  int divisor = 1;
  std::function<bool(int pe)> measures = [](int) { return true; };
  std::function<std::optional<WrongByte>(int pe)> verify = [](int) { return std::nullopt; };
  std::function<void(const Point&)> before_iterate = [](const Point&) {};
  std::string unverified, cannot_run;
  std::size_t memory_bytes = 64;

  std::uint64_t iterated = 0; ///< iterations at the last point
  std::uint64_t verified = 0; ///< the argument of verify()
  std::uint64_t references = 0;
  bool in_order = true; ///< numbers were consecutive, and each reference had the numbers after them
  bool zeroed = true;   ///< the memory was zero at prepare()
};

class ScriptedCase final : public Case {
public:
  ScriptedCase(Script& script, ManualClock& clock) : script_(script), clock_(clock) {}

  std::size_t bytes_needed(const Runtime&, const Point&) const override {
    return script_.memory_bytes;
  }
  void prepare(Arena& arena) override {
    script_.iterated = script_.verified = script_.references = 0;
    pe_ = arena.runtime.pe();
    point_ = arena.point;
    for (std::size_t i = 0; i < arena.size_bytes; ++i) {
      script_.zeroed = script_.zeroed && arena.memory[i] == std::byte{0};
      arena.memory[i] = std::byte{1};
    }
  }
  bool measures() const override { return script_.measures(pe_); }
  void iterate(std::uint64_t first, std::uint64_t count) override {
    script_.before_iterate(point_);
    script_.in_order = script_.in_order && first == script_.iterated &&
                       (!announced_ || announced_ == std::pair(first, count));
    announced_.reset();
    for (std::uint64_t i = first; i < first + count; ++i)
      clock_.advance(script_.cost_ns(i));
    script_.iterated += count;
    if (script_.own_duration_ns)
      duration_ns_ = script_.own_duration_ns(count);
  }
  std::optional<double> last_duration_ns() const override { return duration_ns_; }
  std::optional<TimerQuality> timer() const override { return script_.own_timer; }
  bool reference(std::uint64_t first, std::uint64_t count) override {
    if (!script_.reference_ns)
      return false;
    for (std::uint64_t i = first; i < first + count; ++i)
      clock_.advance(script_.reference_ns(i));
    if (count > 0) {
      announced_ = {first, count};
      ++script_.references;
    }
    return true;
  }
  std::uint64_t bytes_per_iteration() const override { return script_.bytes; }
  std::uint64_t operations_per_iteration() const override { return script_.operations; }
  int latency_divisor() const override { return script_.divisor; }
  std::uint64_t batch_multiple() const override { return script_.multiple; }
  std::string cannot_run(Runtime&) const override { return script_.cannot_run; }
  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    script_.verified = iterations;
    return script_.verify(pe_);
  }
  std::string unverified_reason() const override { return script_.unverified; }

private:
  Script& script_;
  ManualClock& clock_;
  Point point_;
  int pe_ = 0;
  std::optional<double> duration_ns_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> announced_;
};

/// Runs a script through the engine.
struct ScriptedRun {
  ManualClock clock;
  Script script;
  Effort effort;
  Metric metric = Metric::latency;
  TimerQuality quality{20, 30};
  std::vector<Point> points = {Point{8, Traffic::collective, Direction::uni, 1, 0, 1}};
  EngineCallbacks callbacks;
  Findings findings;
  std::vector<ResultRow> rows;

  BenchCase bench_case() {
    BenchCase out;
    out.info.name = "scripted";
    out.info.metric = metric;
    out.info.min_pes = 1;
    out.info.traffics = {Traffic::collective};
    out.make = [this](const Point&) { return std::make_unique<ScriptedCase>(script, clock); };
    return out;
  }
  void run(Runtime& runtime) {
    rows = measure_case(runtime, bench_case(), points, effort, 1, callbacks, findings,
                        {&clock, quality});
  }
  /// The findings without those about what the machine did meanwhile.
  std::vector<Finding> own_findings() const {
    std::vector<Finding> out;
    for (const Finding& finding : findings)
      if (finding.id != "bench-interference")
        out.push_back(finding);
    return out;
  }
};

/// A job of one PE in this process.
class OnePe {
public:
  explicit OnePe(Environment environment = {})
      : environment_(std::move(environment)), options_(environment_), runtime_(request()) {}
  Runtime& runtime() { return runtime_; }

private:
  RuntimeRequest request() {
    RuntimeRequest out;
    out.options = &options_;
    out.environment = environment_;
    return out;
  }
  Environment environment_;
  Options options_;
  Runtime runtime_;
};

} // namespace shmemctl::bench::test
