#include "src/instruments/bench/self_test.h"

#include <cmath>
#include <cstring>
#include <memory>

#include "src/instruments/bench/fixed_rate_transport.h"

namespace shmemctl::bench {

namespace {

/// The settings of one measurement.
struct Setup {
  std::uint64_t put_ns = 1000;
  std::optional<std::uint64_t> damaged_byte; ///< offset in the case's memory, on the last PE
};

/// The byte that a put must have left: the number of the last iteration, then bytes that depend on
/// their offset.
std::byte expected_byte(std::uint64_t iteration, std::size_t offset_bytes) {
  return offset_bytes < sizeof iteration
             ? static_cast<std::byte>(iteration >> (8 * offset_bytes) & 0xff)
             : static_cast<std::byte>((offset_bytes * 7 + 1) & 0xff);
}

/// Each PE puts into its own memory over a FixedRateTransport; each quiet follows a window of
/// puts.
class FixedRatePut final : public Case {
public:
  FixedRatePut(const Setup& setup, const Point& point)
      : setup_(setup), window_(static_cast<std::uint64_t>(point.window)), link_(setup.put_ns),
        source_(point.size_bytes) {}

  std::size_t bytes_needed(const Runtime&, const Point& point) const override {
    return point.size_bytes;
  }
  void prepare(Arena& arena) override {
    Runtime& runtime = arena.runtime;
    pe_ = runtime.pe();
    target_ = arena.memory;
    for (std::size_t offset = 0; offset < source_.size(); ++offset)
      source_[offset] = expected_byte(0, offset);
    rma_ = std::make_unique<Rma>(
        pe_, runtime.n_pes(),
        std::vector<Transport*>(static_cast<std::size_t>(runtime.n_pes()), &link_),
        runtime.failure_detector(), runtime.rma().timeout_s(), true);
    for (int index = 0; index < limits::max_regions; ++index)
      if (const RegionView& view = runtime.rma().region(index); view.base) {
        link_.set_region(view);
        rma_->set_region(view);
      }
    if (setup_.damaged_byte && pe_ == runtime.n_pes() - 1)
      link_.damage(rma_->locate(target_ + *setup_.damaged_byte, pe_).offset_bytes);
  }
  bool measures() const override { return true; }
  void iterate(std::uint64_t first, std::uint64_t count) override {
    link_.start();
    for (std::uint64_t i = 0; i < count; ++i) {
      for (std::size_t offset = 0; offset < sizeof first; ++offset)
        source_[offset] = expected_byte(first + i, offset);
      rma_->put(target_, source_.data(), source_.size(), pe_, 0, false);
      if ((i + 1) % window_ == 0)
        rma_->quiet();
    }
    rma_->quiet();
  }
  std::uint64_t bytes_per_iteration() const override { return source_.size(); }
  std::uint64_t batch_multiple() const override { return window_; }
  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    for (std::size_t offset = 0; offset < source_.size(); ++offset)
      if (const std::byte wanted = expected_byte(iterations - 1, offset); target_[offset] != wanted)
        return WrongByte{pe_, offset, std::to_integer<std::uint64_t>(wanted),
                         std::to_integer<std::uint64_t>(target_[offset]), "self-test"};
    return std::nullopt;
  }

private:
  Setup setup_;
  std::uint64_t window_;
  FixedRateTransport link_;
  std::unique_ptr<Rma> rma_;
  std::byte* target_ = nullptr;
  std::vector<std::byte> source_;
  int pe_ = 0;
};

struct Measured {
  std::optional<ResultRow> row; ///< on PE 0
  Findings findings;
};

class SelfTest {
public:
  SelfTest(Runtime& runtime, const EngineClock& clock) : runtime_(runtime), clock_(clock) {}

  SelfTestResult run() {
    // Powers of ten, up to 10 ms.
    for (std::uint64_t put_ns = 1000; put_ns <= 10000000; put_ns *= 10)
      check_latency(put_ns);
    check_rates(20000, 4096, 16);
    check_rates(200000, 256 << 10, 4);
    check_wrong_byte(777);
    result_.passed = true;
    for (const SelfTestRow& row : result_.rows)
      result_.passed = result_.passed && row.passed;
    for (const std::string& text : runtime_.gather_text(result_.passed ? "" : "failed"))
      result_.passed = result_.passed && text.empty();
    return std::move(result_);
  }

private:
  static constexpr int tries = 5;

  Measured measure(const Setup& setup, Metric metric, std::size_t size_bytes, int window) {
    BenchCase bench_case;
    bench_case.info.name = "self-test";
    bench_case.info.metric = metric;
    bench_case.info.min_pes = 1;
    bench_case.info.traffics = {Traffic::collective};
    bench_case.make = [&setup](const Point& point) {
      return std::make_unique<FixedRatePut>(setup, point);
    };
    Point point;
    point.size_bytes = size_bytes;
    point.traffic = Traffic::collective;
    point.window = window;
    Measured out;
    std::vector<ResultRow> rows =
        measure_case(runtime_, bench_case, {point}, Effort{}, 1, {}, out.findings, clock_);
    if (!rows.empty())
      out.row = std::move(rows.front());
    return out;
  }

  /// Repeats `take` until all its rows pass, or there are no tries left; keeps the last rows.
  template <class Take>
  void repeat(Take&& take) {
    for (int left = tries; left > 0; --left) {
      const std::vector<SelfTestRow> rows = take();
      bool passed = true;
      for (const SelfTestRow& row : rows)
        passed = passed && row.passed;
      // Only PE 0 has rows; it tells the others whether to repeat.
      if (passed || left == 1)
        for (const SelfTestRow& row : rows)
          result_.rows.push_back(row);
      if (runtime_.gather_text(passed ? "" : "again").front().empty())
        return;
    }
  }

  static SelfTestRow compare(std::string what, std::string unit, double injected,
                             const std::optional<double>& reported) {
    SelfTestRow row{std::move(what), std::move(unit), injected, reported, 1, false};
    if (reported)
      row.error = std::abs(*reported - injected) / injected;
    row.passed = row.error <= self_test_tolerance;
    return row;
  }

  void check_latency(std::uint64_t put_ns) {
    repeat([&]() -> std::vector<SelfTestRow> {
      const Measured measured = measure({put_ns, {}}, Metric::latency, 8, 1);
      if (runtime_.pe() != 0)
        return {};
      const ResultRow& row = measured.row.value();
      SelfTestRow out = compare("latency of a put", "us", static_cast<double>(put_ns) * 1e-3,
                                row.stats ? row.stats->p50 : std::nullopt);
      out.passed = out.passed && row.verified == Verified::passed;
      return {out};
    });
  }

  void check_rates(std::uint64_t put_ns, std::size_t size_bytes, int window) {
    const double initiators = runtime_.n_pes();
    const double puts_per_us = initiators * 1e3 / static_cast<double>(put_ns);
    const std::string what = " of puts of " + std::to_string(size_bytes) + " bytes, " +
                             std::to_string(window) + " under way";
    repeat([&]() -> std::vector<SelfTestRow> {
      const Measured measured = measure({put_ns, {}}, Metric::bandwidth, size_bytes, window);
      if (runtime_.pe() != 0)
        return {};
      const ResultRow& row = measured.row.value();
      return {compare("bandwidth" + what, "GB/s",
                      puts_per_us * static_cast<double>(size_bytes) * 1e-3, row.bandwidth_GBps),
              compare("rate" + what, "Mop/s", puts_per_us, row.rate_Mops)};
    });
  }

  void check_wrong_byte(std::uint64_t offset_bytes) {
    const Measured measured = measure({1000, offset_bytes}, Metric::latency, 4096, 1);
    if (runtime_.pe() != 0)
      return;
    const std::string where = "PE " + std::to_string(runtime_.n_pes() - 1) + ", offset " +
                              std::to_string(offset_bytes) + ":";
    SelfTestRow row{"offset of a wrong byte on PE " + std::to_string(runtime_.n_pes() - 1),
                    "bytes",
                    static_cast<double>(offset_bytes),
                    std::nullopt,
                    1,
                    false};
    for (const Finding& finding : measured.findings)
      if (finding.id == "bench-corrupt" && finding.message.find(where) != std::string::npos)
        row.reported = static_cast<double>(offset_bytes);
    row.passed = row.reported && measured.row->status == RowStatus::fail &&
                 measured.row->verified == Verified::failed;
    row.error = row.reported ? 0 : 1;
    result_.rows.push_back(row);
  }

  Runtime& runtime_;
  const EngineClock& clock_;
  SelfTestResult result_;
};

} // namespace

SelfTestResult self_test(Runtime& runtime) {
  const SteadyClock clock;
  return self_test(runtime, {&clock, measure_timer(clock)});
}

SelfTestResult self_test(Runtime& runtime, const EngineClock& clock) {
  return SelfTest(runtime, clock).run();
}

} // namespace shmemctl::bench
