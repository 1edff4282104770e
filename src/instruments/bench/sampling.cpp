#include "src/instruments/bench/sampling.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "src/instruments/bench/statistics.h"

namespace shmemctl::bench {

namespace {

/// A long run has at least this many rounds, each no longer than longest_round_s. After each round
/// the PEs agree on whether the run's duration has passed.
constexpr double rounds_of_duration = 20;
constexpr double longest_round_s = 1;

/// The longest time for which a point gets further samples to meet --max-noise.
constexpr double longest_for_noise_s = 15;

/// Replaces every two neighbouring samples by their mean, one sample of twice the length.
void halve(std::vector<double>& samples) {
  for (std::size_t i = 0; i + 1 < samples.size(); i += 2)
    samples[i / 2] = (samples[i] + samples[i + 1]) / 2;
  samples.resize(samples.size() / 2);
}

/// Keeps the longer of every two neighbours.
void keep_longest(std::vector<double>& times) {
  for (std::size_t i = 0; i + 1 < times.size(); i += 2)
    times[i / 2] = std::max(times[i], times[i + 1]);
  times.resize(times.size() / 2);
}

/// A round of a long run has about this many windows, equal in operations except for the last.
constexpr std::uint64_t windows_of_round = 10;
/// When there are this many windows, only the slower of every two neighbours is kept. Must be even.
constexpr std::size_t max_windows = 4096;

/// Appends samples to `samples`, and the duration of each to `sample_s` if that is given.
class Series {
public:
  Series(Sampler& sampler, PeSamples& samples, double operations_per_iteration, bool with_reference,
         std::vector<double>* sample_s)
      : sampler_(sampler), samples_(samples), operations_(operations_per_iteration),
        with_reference_(with_reference), sample_s_(sample_s) {
    if (sample_s_)
      sample_s_->reserve(JobMemory::max_samples);
  }

  /// Takes one sample: the mean of `runs` runs.
  void take(std::uint64_t iterations, std::uint64_t runs) {
    const std::int64_t begin_ns = sampler_.clock().now_ns();
    take_runs(iterations, runs);
    if (sample_s_)
      sample_s_->push_back(static_cast<double>(sampler_.clock().now_ns() - begin_ns) * 1e-9);
  }

  /// Ends a window: records the mean time of the operations since the last call.
  void end_window() {
    if (window_operations_ > 0)
      samples_.window_us.push_back(window_us_ / window_operations_);
    window_us_ = window_operations_ = 0;
  }
  /// Keeps the slower of every two neighbours, with the length that it had.
  void drop_faster_windows() { keep_longest(samples_.window_us); }

  /// Replaces every two neighbouring samples by one of twice the length.
  void halve_all() {
    halve(samples_.operation_us);
    halve(samples_.reference_us);
    if (sample_s_)
      keep_longest(*sample_s_);
  }

private:
  void take_runs(std::uint64_t iterations, std::uint64_t runs) {
    double reference_ns = 0, operation_ns = 0;
    for (std::uint64_t run = 0; run < runs; ++run) {
      if (with_reference_)
        reference_ns += static_cast<double>(sampler_.reference_sample(iterations));
      operation_ns += static_cast<double>(sampler_.sample(iterations));
    }
    if (!sampler_.measures())
      return;
    const double operations = static_cast<double>(iterations * runs) * operations_;
    if (with_reference_ && sampler_.has_reference())
      samples_.reference_us.push_back(reference_ns * 1e-3 / operations);
    samples_.operation_us.push_back(operation_ns * 1e-3 / operations);
    window_us_ += operation_ns * 1e-3;
    window_operations_ += operations;
  }

  Sampler& sampler_;
  PeSamples& samples_;
  double operations_;
  bool with_reference_;
  std::vector<double>* sample_s_;
  double window_us_ = 0, window_operations_ = 0; ///< sums since end_window()
};

/// Reports the progress of a long run, at most once a second.
class Progress {
public:
  Progress(const Clock& clock, const SamplingProgress& say)
      : clock_(clock), say_(say), said_ns_(clock.now_ns()) {}
  template <class Words>
  void look(const Words& words) {
    constexpr std::int64_t second = 1'000'000'000;
    const std::int64_t now = clock_.now_ns();
    if (now - said_ns_ < second)
      return;
    said_ns_ = now;
    say_(words());
  }

private:
  const Clock& clock_;
  const SamplingProgress& say_;
  std::int64_t said_ns_;
};

} // namespace

Sampler::Sampler(Runtime& runtime, Case& body, const Clock& clock)
    : runtime_(runtime), case_(body), clock_(clock), measures_(body.measures()),
      has_reference_(body.reference(0, 0)) {}

/// PEs reach the barrier at different times, and a PE that waits long in it wakes up late. They
/// reach the sync that follows almost together, so no PE sleeps in it.
void Sampler::start_together() {
  runtime_.collectives().barrier(team_world);
  runtime_.teams().sync(team_world);
}

std::int64_t Sampler::sample(std::uint64_t iterations) {
  start_together();
  const std::int64_t start = clock_.now_ns();
  case_.iterate(next_, iterations);
  const std::int64_t end = clock_.now_ns();
  next_ += iterations;
  if (const std::optional<double> own_ns = case_.last_duration_ns(); own_ns && measures_)
    return static_cast<std::int64_t>(std::llround(*own_ns));
  return end - start;
}

std::int64_t Sampler::reference_sample(std::uint64_t iterations) {
  start_together();
  const std::int64_t start = clock_.now_ns();
  case_.reference(next_, iterations);
  return clock_.now_ns() - start;
}

double Sampler::sync_ns() {
  constexpr int syncs = 15;
  std::vector<double> times;
  for (int i = 0; i < syncs; ++i) {
    start_together();
    const std::int64_t start = clock_.now_ns();
    runtime_.teams().sync(team_world);
    times.push_back(static_cast<double>(clock_.now_ns() - start));
  }
  return median(std::move(times));
}

double Sampler::longest_run_ns() const {
  constexpr double longest_s = 1, share_of_deadline = 0.1;
  return 1e9 * std::min(longest_s, share_of_deadline * runtime_.rma().timeout_s());
}

void run_untimed(Sampler& sampler, std::uint64_t iterations, std::uint64_t batch,
                 const std::string& what, const SamplingProgress& progress) {
  Progress said(sampler.clock(), progress);
  for (std::uint64_t done = 0; done < iterations;) {
    const std::uint64_t now = std::min(batch, iterations - done);
    sampler.sample(now);
    done += now;
    said.look([&] { return fmt::format("{}: {} of {} iterations", what, done, iterations); });
  }
}

namespace {

/// Collective: takes plan.samples more samples at a time until the median of each PE is known well
/// enough, or longest_for_noise_s have passed.
void sample_until_quiet(Sampler& sampler, JobMemory& job, SamplePlan& plan, double max_noise,
                        Series& series, const PeSamples& samples,
                        const SamplingProgress& progress) {
  const std::int64_t start = sampler.clock().now_ns();
  std::uint64_t taken = plan.samples;
  for (;;) {
    const double own_s = static_cast<double>(sampler.clock().now_ns() - start) * 1e-9;
    const JobMemory::Values agreed = job.maximum({median_error(samples.operation_us), own_s, 0, 0});
    plan.noise = agreed[0];
    if (agreed[0] <= max_noise || agreed[1] > longest_for_noise_s)
      return;
    progress(fmt::format("p50 is known to {:.1f}%, {:.1f}% is the aim", agreed[0] * 100,
                         max_noise * 100));
    for (std::uint64_t i = 0; i < plan.samples; ++i) {
      if (taken == JobMemory::max_samples) {
        series.halve_all();
        taken /= 2;
        plan.joined *= 2;
        plan.wall_ns *= 2;
      }
      series.take(plan.batch, plan.joined);
      ++taken;
    }
  }
}

} // namespace

PeSamples take_samples(Sampler& sampler, JobMemory& job, SamplePlan& plan, const Effort& effort,
                       double operations_per_iteration, const SamplingProgress& progress,
                       std::vector<double>* sample_s) {
  PeSamples samples;
  samples.operation_us.reserve(JobMemory::max_samples);
  samples.reference_us.reserve(plan.with_reference ? JobMemory::max_samples : 0);
  Series series(sampler, samples, operations_per_iteration, plan.with_reference, sample_s);
  if (!(effort.duration_s > 0)) {
    run_untimed(sampler, plan.untimed, plan.batch, "before the samples", progress);
    Progress said(sampler.clock(), progress);
    for (std::uint64_t i = 0; i < plan.samples; ++i) {
      series.take(plan.batch, plan.joined);
      said.look([&] { return fmt::format("{} of {} samples", i + 1, plan.samples); });
    }
    if (effort.max_noise > 0)
      sample_until_quiet(sampler, job, plan, effort.max_noise, series, samples, progress);
    return samples;
  }
  const std::int64_t start = sampler.clock().now_ns();
  const double round_s = std::min(effort.duration_s / rounds_of_duration, longest_round_s);
  std::uint64_t taken = 0;
  double done_s = 0;
  // Kept windows. Counted also on PEs that measure nothing, so that all PEs end the same windows.
  std::size_t windows = 0;
  plan.windows = 0;
  const auto end_window = [&] {
    series.end_window();
    ++plan.windows;
    if (++windows < max_windows)
      return;
    series.drop_faster_windows();
    windows /= 2;
  };
  do {
    const auto in_round =
        static_cast<std::uint64_t>(std::ceil(round_s * 1e9 / std::max(plan.wall_ns, 1.0)));
    const std::uint64_t in_window = std::max<std::uint64_t>(in_round / windows_of_round, 1);
    plan.window_s = static_cast<double>(in_window) * plan.wall_ns * 1e-9;
    for (std::uint64_t i = 0; i < in_round; ++i) {
      if (taken == JobMemory::max_samples) {
        series.halve_all();
        taken /= 2;
        plan.joined *= 2; // not `batch`: longer runs would let the other PEs wait longer
        plan.wall_ns *= 2;
      }
      series.take(plan.batch, plan.joined);
      ++taken;
      if ((i + 1) % in_window == 0 || i + 1 == in_round)
        end_window();
    }
    const double own_s = static_cast<double>(sampler.clock().now_ns() - start) * 1e-9;
    done_s = job.maximum({own_s})[0];
    progress(fmt::format("{:.0f} of {:g} s", done_s, effort.duration_s));
  } while (done_s < effort.duration_s);
  return samples;
}

namespace {

constexpr std::uint64_t largest_batch = std::uint64_t{1} << 24;
constexpr int samples_of_group = 5, samples_to_confirm = 2;
constexpr double settled_within = 0.02;
constexpr double warm_up_share = 0.25; ///< share of a point's time for warm-up
constexpr double longest_warm_up_s = 5;
/// Samples are not made longer than this share of a point's time to hide unequal starts.
constexpr double shortest_share = 1.0 / 50;
constexpr double min_samples = 5;
/// -n iterations are split into at least this many samples, if there are enough iterations, because
/// a single sample has no spread.
constexpr std::uint64_t fewest_of_n = 20;
/// More samples do not improve p99; the rest of the memory is for long runs.
constexpr double enough_samples = 4096;

/// What a few samples showed; the same on all PEs.
struct Group {
  double shortest_ns = 0; ///< median on the PE where it is shortest
  double longest_ns = 0;
  double wall_ns = 0; ///< time of one sample including its barriers and reference
  bool measured = false;
};

class Calibration {
public:
  Calibration(Sampler& sampler, JobMemory& job, const TimerQuality& timer, const Effort& effort,
              std::uint64_t batch_multiple, const SamplingProgress& progress)
      : sampler_(sampler), job_(job), effort_(effort), progress_(progress),
        multiple_(std::max<std::uint64_t>(batch_multiple, 1)), start_ns_(sampler.clock().now_ns()) {
    plan_.batch = multiple_;
    const JobMemory::Values agreed =
        job.maximum({sampler.has_reference() ? 1.0 : 0.0, timer.error_ns(), sampler.sync_ns(), 0});
    plan_.with_reference = agreed[0] > 0;
    plan_.shortest_ns = agreed[1] * lengths_of_timer_error;
    const double budget_ns = point_s() * 1e9;
    target_ns_ = std::max(plan_.shortest_ns,
                          std::min(agreed[2] * lengths_of_start_skew, budget_ns * shortest_share));
    if (effort.duration_s > 0) // samples of a long run are fewer, and longer
      target_ns_ = std::max(target_ns_, effort.duration_s * 1e9 / (JobMemory::max_samples / 2.0));
    target_ns_ = std::min(target_ns_, sampler.longest_run_ns());
  }

  SamplePlan run() {
    Group group = measure(1);
    if (!group.measured) {
      plan_.measured = false;
      return plan_;
    }
    group = grow(group);
    if (effort_.warmup == 0)
      group = settle(group);
    else if (sampler_.iterations_done() < effort_.warmup)
      run_untimed(sampler_, effort_.warmup - sampler_.iterations_done(), plan_.batch, "warm-up",
                  progress_);
    plan_.sample_ns = group.shortest_ns;
    plan_.wall_ns = group.wall_ns;
    plan_samples();
    return plan_;
  }

private:
  double point_s() const { return effort_.duration_s > 0 ? effort_.duration_s : effort_.budget_s; }

  Group measure(int samples) {
    std::vector<double> times;
    const std::int64_t start = sampler_.clock().now_ns();
    for (int i = 0; i < samples; ++i) {
      if (plan_.with_reference)
        sampler_.reference_sample(plan_.batch);
      times.push_back(static_cast<double>(sampler_.sample(plan_.batch)));
    }
    const std::int64_t end = sampler_.clock().now_ns();
    constexpr double never = -std::numeric_limits<double>::max();
    const bool counts = sampler_.measures();
    const double middle = median(times);
    const JobMemory::Values agreed =
        job_.maximum({counts ? -middle : never, counts ? middle : never,
                      static_cast<double>(end - start) / samples, counts ? 1.0 : 0.0});
    return {-agreed[0], agreed[1], agreed[2], agreed[3] > 0};
  }

  /// Multiplies the batch by a power of two, so that the lengths of runs vary less.
  bool enlarge(const Group& group) {
    if (group.shortest_ns >= target_ns_ || plan_.batch >= largest_batch)
      return false;
    const double factor = std::clamp(target_ns_ / std::max(group.shortest_ns, 1.0), 2.0, 64.0);
    const auto wanted = static_cast<std::uint64_t>(static_cast<double>(plan_.batch) * factor);
    while (plan_.batch < std::min(wanted, largest_batch))
      plan_.batch *= 2;
    return true;
  }

  /// Enlarges the batch until samples are long enough. A single sample may be long only because it
  /// was interrupted, so others must confirm it.
  Group grow(Group group) {
    for (int confirmed = 0;;) {
      const bool enlarged = enlarge(group);
      if (!enlarged && confirmed == samples_to_confirm)
        return group;
      const Group next = measure(1);
      if (enlarged || next.shortest_ns < group.shortest_ns)
        group = next;
      confirmed = enlarged ? 0 : confirmed + 1;
    }
  }

  /// Repeats samples until their times settle or the time for warm-up is over, because the first
  /// ones meet cold caches and unmapped pages.
  Group settle(Group group) {
    const double longest_ns = std::min(warm_up_share * point_s(), longest_warm_up_s) * 1e9;
    double previous_ns = 0;
    for (;;) {
      const double fitting = longest_ns / 4 / std::max(group.wall_ns, 1.0);
      group = measure(static_cast<int>(std::clamp<double>(fitting, 1, samples_of_group)));
      if (enlarge(group)) {
        previous_ns = 0;
        continue;
      }
      const double apart = std::abs(group.longest_ns - previous_ns);
      if (apart <= settled_within * group.longest_ns)
        return group;
      previous_ns = group.longest_ns;
      const auto own = static_cast<double>(sampler_.clock().now_ns() - start_ns_);
      if (job_.maximum({own})[0] > longest_ns)
        return group;
    }
  }

  void plan_samples() {
    if (effort_.iterations > 0 && !(effort_.duration_s > 0)) {
      plan_iterations();
      return;
    }
    const double fitting = effort_.budget_s * 1e9 / std::max(plan_.wall_ns, 1.0);
    plan_.samples = static_cast<std::uint64_t>(std::clamp(fitting, min_samples, enough_samples));
  }

  std::uint64_t in_whole_windows(std::uint64_t batch) const {
    return batch > multiple_ ? batch / multiple_ * multiple_ : batch;
  }

  /// Plans exactly the requested number of iterations. The remainder that does not fill a sample
  /// runs untimed.
  void plan_iterations() {
    const std::uint64_t n = effort_.iterations;
    const std::uint64_t longest = in_whole_windows(std::max<std::uint64_t>(n / fewest_of_n, 1));
    const std::uint64_t runs = std::max<std::uint64_t>(n / std::min(plan_.batch, longest), 1);
    plan_.joined = (runs + JobMemory::max_samples - 1) / JobMemory::max_samples;
    plan_.samples = runs / plan_.joined;
    const std::uint64_t batch = in_whole_windows(n / (plan_.samples * plan_.joined));
    plan_.sample_ns *= static_cast<double>(batch) / static_cast<double>(plan_.batch);
    plan_.batch = batch;
    plan_.untimed = n - batch * plan_.joined * plan_.samples;
  }

  Sampler& sampler_;
  JobMemory& job_;
  const Effort& effort_;
  const SamplingProgress& progress_;
  const std::uint64_t multiple_;
  SamplePlan plan_;
  double target_ns_ = 0;
  std::int64_t start_ns_;
};

} // namespace

SamplePlan calibrate(Sampler& sampler, JobMemory& job, const TimerQuality& timer,
                     const Effort& effort, std::uint64_t batch_multiple,
                     const SamplingProgress& progress) {
  return Calibration(sampler, job, timer, effort, batch_multiple, progress).run();
}

} // namespace shmemctl::bench
