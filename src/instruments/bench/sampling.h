// One point of a case: warm-up, calibration, samples.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/instruments/bench/case.h"
#include "src/instruments/bench/engine.h"
#include "src/instruments/bench/job_memory.h"
#include "src/instruments/bench/timer.h"

namespace shmemctl::bench {

/// Runs a case under the clock. All calls are collective: they are the same on all PEs, whatever
/// their own clocks say.
class Sampler {
public:
  Sampler(Runtime& runtime, Case& body, const Clock& clock);

  /// Time of the iterations from the barrier on, in ns, on this PE; by the case's own clock if it
  /// has one.
  std::int64_t sample(std::uint64_t iterations);
  /// The same for Case::reference(), with the numbers that the next sample will have.
  std::int64_t reference_sample(std::uint64_t iterations);
  /// How unevenly PEs start a sample at most: the time of a sync.
  double sync_ns();
  /// PEs that measure nothing wait for the others meanwhile: far below the deadline of a wait.
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
  /// Runs of one sample, which is their mean; more than one if there are many runs.
  std::uint64_t joined = 1;
  std::uint64_t samples = 1; ///< samples of each PE
  std::uint64_t untimed = 0; ///< iterations before the samples, which do not fill one
  double wall_ns = 0;        ///< time of one sample with its barriers and references
  bool with_reference = false;
  bool measured = true; ///< some PE measures
  /// A sample that is shorter than this is wrong by more than 0.25 % because of the clock.
  double shortest_ns = 0;
  double sample_ns = 0; ///< sample time of the PE whose samples are shortest
  double noise = 0;     ///< with Effort::max_noise: the noise that is left, on the PE with most
  double window_s = 0;  ///< with Effort::duration_s: the length of PeSamples::window_us
};

/// A sample is at least this many times as long as the error of the clock: 0.25 %.
inline constexpr double lengths_of_timer_error = 400;
/// ... and as PEs start apart at most: 1 %, mostly far less.
inline constexpr double lengths_of_start_skew = 100;

/// Said between the samples of a long run, on every PE, about once a second: "3 of 10 s".
using SamplingProgress = std::function<void(const std::string& how_far)>;

/// Collective: warms the case up until its times settle (or for effort.warmup iterations), and
/// finds how many iterations make one sample.
/// @param batch_multiple of Case
SamplePlan calibrate(Sampler& sampler, JobMemory& job, const TimerQuality& timer,
                     const Effort& effort, std::uint64_t batch_multiple,
                     const SamplingProgress& progress);

/// Runs iterations that are not timed, `batch` at a time, with progress.
void run_untimed(Sampler& sampler, std::uint64_t iterations, std::uint64_t batch,
                 const std::string& what, const SamplingProgress& progress);

/// Collective: takes the samples. Times are per operation.
/// @param sample_s if given: how long each took with its barriers and references, in s, on this PE;
///                 of samples that became one the longest
PeSamples take_samples(Sampler& sampler, JobMemory& job, SamplePlan& plan, const Effort& effort,
                       double operations_per_iteration, const SamplingProgress& progress,
                       std::vector<double>* sample_s = nullptr);

} // namespace shmemctl::bench
