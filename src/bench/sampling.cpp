#include "src/bench/sampling.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "src/bench/statistics.h"

namespace shmemctl::bench {

namespace {

/// A long run asks the others after each such share of its time whether it is over.
constexpr double rounds_of_duration = 20;
constexpr double longest_round_s = 1;

/// Two neighbours become one sample of twice the length.
void halve(std::vector<double>& samples) {
  for (std::size_t i = 0; i + 1 < samples.size(); i += 2)
    samples[i / 2] = (samples[i] + samples[i + 1]) / 2;
  samples.resize(samples.size() / 2);
}

/// The longer one of two neighbours stays.
void keep_longest(std::vector<double>& times) {
  for (std::size_t i = 0; i + 1 < times.size(); i += 2)
    times[i / 2] = std::max(times[i], times[i + 1]);
  times.resize(times.size() / 2);
}

/// Takes samples into `samples`, and the time that each took into `sample_s` if that is given.
class Series {
public:
  Series(Sampler& sampler, PeSamples& samples, double operations_per_iteration, bool with_reference,
         std::vector<double>* sample_s)
      : sampler_(sampler), samples_(samples), operations_(operations_per_iteration),
        with_reference_(with_reference), sample_s_(sample_s) {
    if (sample_s_)
      sample_s_->reserve(JobMemory::most_samples);
  }

  /// One sample: the mean of `runs` runs.
  void take(std::uint64_t iterations, std::uint64_t runs) {
    const std::int64_t begin_ns = sampler_.clock().now_ns();
    take_runs(iterations, runs);
    if (sample_s_)
      sample_s_->push_back(static_cast<double>(sampler_.clock().now_ns() - begin_ns) * 1e-9);
  }

  /// Two neighbours become one sample of twice the length.
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
  }

  Sampler& sampler_;
  PeSamples& samples_;
  double operations_;
  bool with_reference_;
  std::vector<double>* sample_s_;
};

/// Says how far a long run is, at most once a second.
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

/// PEs reach the barrier at different times, and who waits long there wakes up late; all leave the
/// sync behind it within one another's sight.
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

PeSamples take_samples(Sampler& sampler, JobMemory& job, SamplePlan& plan, const Effort& effort,
                       double operations_per_iteration, const SamplingProgress& progress,
                       std::vector<double>* sample_s) {
  PeSamples samples;
  samples.operation_us.reserve(JobMemory::most_samples);
  samples.reference_us.reserve(plan.with_reference ? JobMemory::most_samples : 0);
  Series series(sampler, samples, operations_per_iteration, plan.with_reference, sample_s);
  if (!(effort.duration_s > 0)) {
    run_untimed(sampler, plan.untimed, plan.batch, "before the samples", progress);
    Progress said(sampler.clock(), progress);
    for (std::uint64_t i = 0; i < plan.samples; ++i) {
      series.take(plan.batch, plan.joined);
      said.look([&] { return fmt::format("{} of {} samples", i + 1, plan.samples); });
    }
    return samples;
  }
  const std::int64_t start = sampler.clock().now_ns();
  const double round_s = std::min(effort.duration_s / rounds_of_duration, longest_round_s);
  std::uint64_t taken = 0;
  double done_s = 0;
  do {
    const auto in_round =
        static_cast<std::uint64_t>(std::ceil(round_s * 1e9 / std::max(plan.wall_ns, 1.0)));
    for (std::uint64_t i = 0; i < in_round; ++i) {
      if (taken == JobMemory::most_samples) {
        series.halve_all();
        taken /= 2;
        plan.joined *= 2; // longer runs would let others wait for longer
        plan.wall_ns *= 2;
      }
      series.take(plan.batch, plan.joined);
      ++taken;
    }
    const double own_s = static_cast<double>(sampler.clock().now_ns() - start) * 1e-9;
    done_s = job.maximum({own_s})[0];
    progress(fmt::format("{:.0f} of {:g} s", done_s, effort.duration_s));
  } while (done_s < effort.duration_s);
  return samples;
}

} // namespace shmemctl::bench
