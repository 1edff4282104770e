// The engine's clock, and its accuracy. (Kernels and streams are timed by clocks of the GPU.)
#pragma once

#include <cstdint>
#include <string>

namespace shmemctl::bench {

/// Time since some fixed moment, in ns; never decreases. Tests have their own implementation.
class Clock {
public:
  virtual ~Clock() = default;
  virtual std::int64_t now_ns() const = 0;
  virtual std::string name() const = 0;
};

/// CLOCK_MONOTONIC through std::chrono. The kernel keeps it correct over frequency changes, sleep
/// states and migrations, and reads the TSC without a system call if the TSC is reliable.
class SteadyClock final : public Clock {
public:
  std::int64_t now_ns() const override;
  std::string name() const override;
};

/// How well a clock can tell the length of an interval.
struct TimerQuality {
  double resolution_ns = 0; ///< smallest step between two readings that differ
  double cost_ns = 0;       ///< cost of one reading
  /// The upper bound of the error of an interval between two readings.
  double error_ns() const { return resolution_ns + cost_ns; }
};
/// Measures the resolution and the cost of a clock. Reads the clock for about a millisecond.
TimerQuality measure_timer(const Clock& clock);

} // namespace shmemctl::bench
