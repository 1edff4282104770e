// One point of a case: warm-up, calibration, samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/instruments/bench/case.h"
#include "src/instruments/bench/engine.h"
#include "src/instruments/bench/job_memory.h"
#include "src/instruments/bench/timer.h"

namespace shmemctl::bench {

/// Runs a case and measures its time. All calls are collective: decisions are the same on all PEs,
/// whatever their own clocks say.
class Sampler {
public:
  Sampler(Runtime& runtime, Case& body, const Clock& clock);

  /// Runs the iterations after a barrier. Returns their time on this PE, in ns; by the case's own
  /// clock if it has one.
  std::int64_t sample(std::uint64_t iterations);
  /// As sample(), for Case::reference(), with the iteration numbers of the next sample.
  std::int64_t reference_sample(std::uint64_t iterations);
  /// The time of one sync, in ns: PEs start a sample at most that far apart.
  double sync_ns();
  /// The longest time that a run may take, in ns. PEs that measure nothing wait for the others
  /// meanwhile, so it is far below the deadline of a wait.
  double longest_run_ns() const;

  bool measures() const { return measures_; }
  bool has_reference() const { return has_reference_; }
  std::uint64_t iterations_done() const { return next_; }
  const Clock& clock() const { return clock_; }

private:
  void start_together();

  Runtime& runtime_;
  Case& case_;
  const Clock& clock_;
  std::uint64_t next_ = 0;
  bool measures_, has_reference_;
};

/// How a point is sampled; the same on all PEs.
struct SamplePlan {
  std::uint64_t batch = 1; ///< iterations of one run, timed together
  /// Runs whose mean is one sample; more than one if there are more runs than samples are kept.
  std::uint64_t joined = 1;
  std::uint64_t samples = 1; ///< samples of each PE
  /// Iterations that do not fill a sample, and run untimed before the samples.
  std::uint64_t untimed = 0;
  double wall_ns = 0; ///< time of one sample including its barriers and reference
  bool with_reference = false;
  bool measured = true; ///< whether any PE measures
  /// A run that is shorter than this is wrong by more than 0.25 %, because of the clock's error.
  double shortest_ns = 0;
  double sample_ns = 0; ///< time of a run on the PE whose runs are shortest
  /// With Effort::max_noise: the remaining error of p50, on the PE where it is largest.
  double noise = 0;
  /// With Effort::duration_s: length of a window (PeSamples::window_us), which has whole samples.
  double window_s = 0;
  /// With Effort::duration_s: all windows of the run, also those that were dropped because a
  /// neighbour was slower.
  std::size_t windows = 0;
};

/// A sample is at least this many times as long as the error of the clock, so that the error is at
/// most 0.25 %.
inline constexpr double lengths_of_timer_error = 400;
/// If time allows, a sample is this many times as long as the PEs' starts may be apart: the error
/// is then 1 % at most, and usually far less.
inline constexpr double lengths_of_start_skew = 100;

/// Called on every PE between samples or untimed iterations, to show progress: "3 of 10 s".
using SamplingProgress = std::function<void(const std::string& how_far)>;

/// Collective: warms the case up until its times settle, at most for a quarter of the point's time
/// (or for effort.warmup iterations), and determines how many iterations make one sample.
/// @param batch_multiple Case::batch_multiple()
SamplePlan calibrate(Sampler& sampler, JobMemory& job, const TimerQuality& timer,
                     const Effort& effort, std::uint64_t batch_multiple,
                     const SamplingProgress& progress);

/// Runs iterations without keeping their times, `batch` at a time, and reports progress.
void run_untimed(Sampler& sampler, std::uint64_t iterations, std::uint64_t batch,
                 const std::string& what, const SamplingProgress& progress);

/// Collective: takes the samples. Their times are per operation.
/// @param sample_s if given: receives the duration of each sample with its barriers and references,
/// in s, on this PE; if samples are merged, the longest one's
PeSamples take_samples(Sampler& sampler, JobMemory& job, SamplePlan& plan, const Effort& effort,
                       double operations_per_iteration, const SamplingProgress& progress,
                       std::vector<double>* sample_s = nullptr);

} // namespace shmemctl::bench
