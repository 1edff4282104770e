// The one clock of all measurements, and what it is worth.
#pragma once

#include <cstdint>
#include <string>

namespace shmemctl::bench {

/// Time since some moment, in ns; never goes back. A test has one of its own.
class Clock {
public:
  virtual ~Clock() = default;
  virtual std::int64_t now_ns() const = 0;
  virtual std::string name() const = 0;
};

/// CLOCK_MONOTONIC through std::chrono: the kernel keeps it right over frequency changes, sleep
/// states and migrations, and reads the TSC without a system call where that is sound.
class SteadyClock final : public Clock {
public:
  std::int64_t now_ns() const override;
  std::string name() const override;
};

/// How well a clock can tell the length of an interval.
struct TimerQuality {
  double resolution_ns = 0; ///< smallest step between two readings that differ
  double cost_ns = 0;       ///< cost of one reading
  /// An interval that two readings bound is wrong by less than this.
  double error_ns() const { return resolution_ns + cost_ns; }
};
/// Reads the clock for about a millisecond.
TimerQuality measure_timer(const Clock& clock);

} // namespace shmemctl::bench
