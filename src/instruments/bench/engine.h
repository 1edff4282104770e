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

/// How much is measured at each point. Zero lets the engine choose.
struct Effort {
  std::uint64_t iterations = 0; ///< -n: iterations in total; 20 samples or more, if possible
  std::uint64_t warmup = 0;     ///< -w: iterations before the samples; 0: until times settle
  double duration_s = 0;        ///< -D: seconds to measure, instead of a number of iterations
  double budget_s = 0.2;        ///< time per point if neither is given
  bool verify = true;
  /// A point for which neither iterations nor a duration are given is sampled until the relative
  /// error of its p50 (median_error()) is at most this, but at most for 15 s after budget_s. 0: it
  /// is sampled for budget_s.
  double max_noise = 0;
  bool histogram = false; ///< whether rows have a histogram
};

/// The points of a case: sizes min, min * step, ... max, for one kind of traffic and one direction.
struct Sweep {
  std::size_t min_bytes = 0, max_bytes = 0; ///< 0: the case's own
  double step_factor = 2;                   ///< > 1
  std::optional<Traffic> traffic;           ///< nothing: the case's default
  Direction direction = Direction::uni;
  int window = 0; ///< 0: the case's own (64 for bandwidth and rate, 1 for latency)
  int first_pe = 0, second_pe = 1;
  bool matrix = false; ///< every ordered pair of PEs, one after the other
  LaunchRequest launch{};
  /// If not 0: added from one size to the next, instead of the factor.
  std::size_t step_bytes = 0;
  std::vector<std::size_t> sizes = {}; ///< if not empty: the only sizes
};
/// Throws Error (usage) that says what to pass instead if the case does not support the sweep.
std::vector<Point> points_of(const CaseInfo& info, const Sweep& sweep, int n_pes);
/// Whether all PEs send and receive the same amount at every point, so that their NICs should, too.
/// @param points of each case
bool loads_alike(const std::vector<BenchCase>& cases,
                 const std::vector<std::vector<Point>>& points);

/// Called on every PE after each point, with all `rows` so far (only on PE 0; empty elsewhere).
using PointDone = std::function<void(const std::vector<ResultRow>& rows)>;
/// Called on every PE before each point and during long ones (for the watchdog and progress line).
using PointBegins = std::function<void(const std::string& words)>;

/// Called on every PE between the timed loop and the verification, with the case's memory (for
/// tests of the verification).
using BeforeVerification = std::function<void(std::byte* memory, std::size_t size_bytes)>;

struct EngineCallbacks {
  PointBegins begins;
  PointDone done;
  BeforeVerification before_verification;
  /// Measures the limit of kernels' rows, once for each pattern of traffic. nullptr: these rows are
  /// compared with the limit of the node model.
  LinkMeter* links = nullptr;
};

/// Collective: measures one case at all points. Returns the rows on PE 0 (empty elsewhere), and
/// adds findings there. Allocates or registers the memory, and frees it. Throws Error: unavailable
/// (the heap is too small: the error says which --symmetric-size is needed; memory cannot be
/// registered; or a PE was lost), deadline.
std::vector<ResultRow> measure_case(Runtime& runtime, const BenchCase& bench_case,
                                    const std::vector<Point>& points, const Effort& effort,
                                    std::uint64_t seed, const EngineCallbacks& callbacks,
                                    Findings& findings);

/// The engine's clock and its accuracy; tests pass another one than SteadyClock.
struct EngineClock {
  const Clock* clock = nullptr;
  TimerQuality quality;
};
std::vector<ResultRow> measure_case(Runtime& runtime, const BenchCase& bench_case,
                                    const std::vector<Point>& points, const Effort& effort,
                                    std::uint64_t seed, const EngineCallbacks& callbacks,
                                    Findings& findings, const EngineClock& clock);

/// Collective: true on every PE if any row failed, so that all PEs return the same exit code.
bool any_failed(Runtime& runtime, const std::vector<ResultRow>& rows);

} // namespace shmemctl::bench
