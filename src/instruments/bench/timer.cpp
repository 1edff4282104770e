#include "src/instruments/bench/timer.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "src/base/sysroot.h"

namespace shmemctl::bench {

namespace {

constexpr int timer_rounds = 20;
constexpr int readings_per_round = 1000;

} // namespace

std::int64_t SteadyClock::now_ns() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string SteadyClock::name() const {
  const auto source =
      Sysroot().read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  return source && !source->empty() ? "CLOCK_MONOTONIC (" + *source + ")" : "CLOCK_MONOTONIC";
}

TimerQuality measure_timer(const Clock& clock) {
  TimerQuality quality{std::numeric_limits<double>::infinity(),
                       std::numeric_limits<double>::infinity()};
  for (int round = 0; round < timer_rounds; ++round) {
    const std::int64_t start = clock.now_ns();
    std::int64_t last = start;
    for (int reading = 0; reading < readings_per_round; ++reading) {
      const std::int64_t now = clock.now_ns();
      if (now != last)
        quality.resolution_ns = std::min(quality.resolution_ns, static_cast<double>(now - last));
      last = now;
    }
    // The fastest round was not interrupted.
    quality.cost_ns =
        std::min(quality.cost_ns, static_cast<double>(last - start) / readings_per_round);
  }
  // A clock that never advanced has a step longer than the measurement, of unknown length.
  if (quality.resolution_ns == std::numeric_limits<double>::infinity())
    quality.resolution_ns = 1e6;
  return quality;
}

} // namespace shmemctl::bench
