// How many iterations make a sample that the clock can tell well.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/bench/sampling.h"
#include "src/bench/statistics.h"

namespace shmemctl::bench {

namespace {

constexpr std::uint64_t largest_batch = std::uint64_t{1} << 24;
constexpr int samples_of_group = 5, samples_to_confirm = 2;
constexpr double settled_within = 0.02;
constexpr double warm_up_share = 0.25; ///< of a point's time
constexpr double longest_warm_up_s = 5;
/// Samples are not made longer than this share of a point's time for the sake of the start.
constexpr double shortest_share = 1.0 / 50;
constexpr double fewest_samples = 5;
/// p99 of so many is as good as it gets; the rest of the memory is for long runs.
constexpr double enough_samples = 4096;

/// What a few samples showed; the same on all PEs.
struct Group {
  double shortest_ns = 0; ///< median on the PE where it is shortest
  double longest_ns = 0;
  double wall_ns = 0; ///< of one sample with all that belongs to it
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
      target_ns_ = std::max(target_ns_, effort.duration_s * 1e9 / (JobMemory::most_samples / 2.0));
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

  /// Multiples by powers of two, so that runs differ less in what they do.
  bool enlarge(const Group& group) {
    if (group.shortest_ns >= target_ns_ || plan_.batch >= largest_batch)
      return false;
    const double factor = std::clamp(target_ns_ / std::max(group.shortest_ns, 1.0), 2.0, 64.0);
    const auto wanted = static_cast<std::uint64_t>(static_cast<double>(plan_.batch) * factor);
    while (plan_.batch < std::min(wanted, largest_batch))
      plan_.batch *= 2;
    return true;
  }

  /// One sample that lasted long enough may have been interrupted: others have to last as long.
  Group grow(Group group) {
    for (int confirmed = 0; confirmed < samples_to_confirm;) {
      const bool enlarged = enlarge(group);
      const Group next = measure(1);
      if (enlarged || next.shortest_ns < group.shortest_ns)
        group = next;
      confirmed = enlarged ? 0 : confirmed + 1;
    }
    return group;
  }

  /// The first samples find cold caches and pages that are not there yet.
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
    plan_.samples = static_cast<std::uint64_t>(std::clamp(fitting, fewest_samples, enough_samples));
  }

  /// As many as were asked for; the few that do not fill samples of one length go before them.
  void plan_iterations() {
    const std::uint64_t n = effort_.iterations;
    const std::uint64_t runs = std::max<std::uint64_t>(n / plan_.batch, 1);
    plan_.joined = (runs + JobMemory::most_samples - 1) / JobMemory::most_samples;
    plan_.samples = runs / plan_.joined;
    std::uint64_t batch = n / (plan_.samples * plan_.joined);
    if (batch > multiple_)
      batch = batch / multiple_ * multiple_;
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
