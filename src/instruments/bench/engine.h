// The measurement engine: points, warm-up, calibration, samples, verification, rows.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/instruments/bench/bandwidth_limit.h"
#include "src/instruments/bench/case.h"
#include "src/instruments/bench/timer.h"

namespace shmemctl::bench {

/// How much is measured at each point. Zero means: choose.
struct Effort {
  std::uint64_t iterations = 0; ///< -n: operations in all, in 20 samples or more
  std::uint64_t warmup = 0;     ///< -w: operations before; 0: until times settle
  double duration_s = 0;        ///< -D: instead of iterations
  double budget_s = 0.2;        ///< per point when neither is given
  bool verify = true;
  /// A point without iterations and duration is sampled until the relative error of its p50
  /// (median_error()) is at most this, or for 15 s. 0: for budget_s.
  double max_noise = 0;
  bool histogram = false; ///< whether rows have a histogram
};

/// The points of a case: sizes min, min * step, ... max, by each traffic and direction asked for.
struct Sweep {
  std::size_t min_bytes = 0, max_bytes = 0; ///< 0: the case's own
  double step_factor = 2;                   ///< > 1
  std::optional<Traffic> traffic;           ///< the case's default
  Direction direction = Direction::uni;
  int window = 0; ///< 0: the case's own (64 for bandwidth and rate, 1 for latency)
  int first_pe = 0, second_pe = 1;
  bool matrix = false; ///< every ordered pair of PEs, one after the other
  LaunchRequest launch{};
  std::size_t step_bytes = 0;          ///< instead of the factor, if not 0
  std::vector<std::size_t> sizes = {}; ///< if not empty: the only sizes
};
/// Throws Error (usage), naming the legal range, for a sweep that the case cannot do.
std::vector<Point> points_of(const CaseInfo& info, const Sweep& sweep, int n_pes);
/// Whether all PEs send and receive as much as each other at every point: then their NICs ought to
/// as well.
bool loads_alike(const std::vector<std::vector<Point>>& points);

/// Called on every PE after each point: `rows` so far (filled on PE 0 only).
using PointDone = std::function<void(const std::vector<ResultRow>& rows)>;
/// Called before each point on every PE (for the watchdog and a progress line).
using PointBegins = std::function<void(const std::string& words)>;

/// Called on every PE between the timed loop and the look at its memory (for tests of that look).
using BeforeVerification = std::function<void(std::byte* memory, std::size_t size_bytes)>;

struct EngineCallbacks {
  PointBegins begins;
  PointDone done;
  BeforeVerification before_verification;
  /// Measures the limit of kernels' rows, once per job. nullptr: they are compared with the model's
  /// limit.
  LinkMeter* links = nullptr;
};

/// Collective: measures one case at all points. Returns the rows on PE 0 (empty elsewhere); adds
/// findings (`bench-corrupt`: PE, offset, expected, found) there. The memory comes from the heap
/// and goes back. Throws Error: unavailable (the heap is too small: says what --symmetric-size it
/// takes; a PE was lost), deadline.
std::vector<ResultRow> measure_case(Runtime& runtime, const BenchCase& bench_case,
                                    const std::vector<Point>& points, const Effort& effort,
                                    std::uint64_t seed, const EngineCallbacks& callbacks,
                                    Findings& findings);

/// The same by another clock than SteadyClock (tests have one of their own).
struct EngineClock {
  const Clock* clock = nullptr;
  TimerQuality quality;
};
std::vector<ResultRow> measure_case(Runtime& runtime, const BenchCase& bench_case,
                                    const std::vector<Point>& points, const Effort& effort,
                                    std::uint64_t seed, const EngineCallbacks& callbacks,
                                    Findings& findings, const EngineClock& clock);

/// True on every PE if any row failed (so that all return the same exit code). Collective.
bool any_failed(Runtime& runtime, const std::vector<ResultRow>& rows);

} // namespace shmemctl::bench
