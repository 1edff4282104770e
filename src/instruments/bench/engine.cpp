#include "src/instruments/bench/engine.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "src/base/hash.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/instruments/bench/above_limit.h"
#include "src/instruments/bench/bandwidth_limit.h"
#include "src/instruments/bench/case_table.h"
#include "src/instruments/bench/interference.h"
#include "src/instruments/bench/job_memory.h"
#include "src/instruments/bench/path.h"
#include "src/instruments/bench/rows.h"
#include "src/instruments/bench/sampling.h"
#include "src/instruments/bench/slow_pairs.h"
#include "src/instruments/bench/stall.h"
#include "src/instruments/bench/tcp_counters.h"
#include "src/instruments/bench/thread_times.h"
#include "src/instruments/bench/verification.h"
#include "src/runtime/runtime.h"

namespace shmemctl::bench {

namespace {

/// The measurement of one case on this PE.
class CaseRun {
public:
  CaseRun(Runtime& runtime, const BenchCase& bench_case, const std::vector<Point>& points,
          const Effort& effort, std::uint64_t seed, const EngineCallbacks& callbacks,
          Findings& findings, const EngineClock& clock)
      : runtime_(runtime), entry_(bench_case), points_(points), effort_(effort), seed_(seed),
        callbacks_(callbacks), findings_(findings), clock_(clock), job_(runtime),
        memory_(runtime, points.front().launch.memory, largest_bytes(),
                "the case's largest point") {}

  std::vector<ResultRow> run() {
    interference_.cpu = bound_cpu();
    for (const Point& point : points_) {
      measure(point);
      if (callbacks_.done)
        callbacks_.done(rows_);
    }
    memory_.free();
    job_.free();
    add_findings(runtime_.gather_values(interference_, "interference counters"));
    return std::move(rows_);
  }

private:
  std::size_t largest_bytes() const {
    std::size_t largest = 1; // an allocation of 0 bytes would fail
    for (const Point& point : points_)
      largest = std::max(largest, entry_.make(point)->bytes_needed(runtime_, point));
    return largest;
  }

  std::string text_of(const Point& point) const {
    std::string words = "bench " + entry_.info.name;
    if (entry_.info.sized)
      words += " " + format_size_bytes(point.size_bytes);
    return words;
  }

  void begin(const std::string& words) const {
    runtime_.failure_detector().phase(words);
    if (callbacks_.begins)
      callbacks_.begins(words);
  }

  void measure(const Point& point) {
    const std::string words = text_of(point);
    begin(words);
    const std::uint64_t begun_ns = SteadyClock().now_ns();
    const std::unique_ptr<Case> body = entry_.make(point);
    Arena arena{runtime_,
                point,
                memory_.get(),
                body->bytes_needed(runtime_, point),
                seed_ + 0x9e3779b97f4a7c15U * (rows_seen_ + 1) + fnv1a(entry_.info.name),
                memory_.registered()};
    ++rows_seen_;
    if (const std::string reason = why_not(*body); !reason.empty())
      return skip(point, reason);
    memory_.clear(arena.size_bytes);
    // No PE may write before all have zeroed their memory.
    runtime_.collectives().barrier(team_world);
    body->prepare(arena);
    runtime_.collectives().barrier(team_world);

    Sampler sampler(runtime_, *body, *clock_.clock);
    const SamplingProgress progress = [&](const std::string& how_far) {
      begin(words + ", " + how_far);
    };
    SamplePlan plan = calibrate(sampler, job_, body->timer().value_or(clock_.quality), effort_,
                                body->batch_multiple(), progress);
    PeSamples own;
    std::vector<double> sample_s;
    const Usage before = usage();
    const TcpCounters tcp_before = read_tcp_counters(sysroot_);
    const std::vector<NicTraffic> moved_before = traffic_with(*body);
    const std::map<std::string, std::uint64_t> ran_before = thread_run_ns(sysroot_);
    if (plan.measured)
      own = take_samples(sampler, job_, plan, effort_,
                         static_cast<double>(body->operations_per_iteration()) *
                             body->latency_divisor(),
                         progress, &sample_s);
    const Usage after = usage();
    interference_.add(before, after);
    PathUse own_use = own_path(runtime_, point);
    own_use.cores = core_shares(ran_before, thread_run_ns(sysroot_), after.at_s - before.at_s);
    if (std::vector<std::string> carriers = body->carriers(); !carriers.empty())
      own_use.transports = std::move(carriers);
    own_use.measures = sampler.measures();
    own_use.ports = ports_used(runtime_.node(), moved_before, traffic_with(*body), &sysroot_);
    own_use.tcp = change_between(tcp_before, read_tcp_counters(sysroot_));
    const std::vector<PathUse> uses = gather_paths(runtime_, own_use);
    own.measures = sampler.measures();
    own.bytes_per_iteration = body->bytes_per_iteration();
    own.operations_per_iteration = body->operations_per_iteration();

    Verification verification{Verified::unchecked, "verification is switched off", {}};
    if (callbacks_.before_verification)
      memory_.look_at(arena.size_bytes, callbacks_.before_verification);
    if (effort_.verify)
      verification = verify_point(runtime_, *body, sampler.iterations_done());
    const GpuLimit gpus = limit_of_gpus(*body, point);
    own.limited_bytes_per_iteration = point.traffic == Traffic::collective
                                          ? gpus.collective_bytes
                                          : static_cast<double>(own.bytes_per_iteration);
    const std::vector<PeSamples> samples = job_.gather(own);
    const std::vector<std::vector<double>> window_us = gather_windows(own.window_us);
    const FoundLimit link =
        gpus.on_gpus ? gpus.found : limit_of_ports(point, uses, gpus.found.reason);
    if (runtime_.pe() != 0)
      return;
    const std::map<std::string, double> cores = most_cores(uses);
    conclude({entry_.info, point, runtime_.n_pes(), plan, samples, verification,
              std::min<std::uint64_t>(body->batch_multiple(), plan.batch), link,
              row_path(point, runtime_.placement(), uses), window_us, effort_.histogram, cores},
             words);
    rows_.back().time_s = static_cast<double>(SteadyClock().now_ns() - begun_ns) * 1e-9;
    check_for_stall(sample_s, uses, words);
  }

  /// The traffic so far by port: that of the transports and that of the case itself.
  std::vector<NicTraffic> traffic_with(const Case& body) const {
    std::vector<NicTraffic> all = traffic_of(runtime_);
    for (const NicTraffic& own : body.traffic()) {
      const auto known = std::find_if(all.begin(), all.end(),
                                      [&own](const NicTraffic& one) { return one.nic == own.nic; });
      if (known == all.end()) {
        all.push_back(own);
        continue;
      }
      known->put_bytes += own.put_bytes;
      known->get_bytes += own.get_bytes;
      known->operations += own.operations;
    }
    return all;
  }

  /// Collective: the limit of the point's GPU links or GPU memory; none if it is not on GPU memory.
  GpuLimit limit_of_gpus(const Case& body, const Point& point) const {
    if (point.launch.memory != MemoryKind::gpu)
      return {};
    return gpu_limit_of(runtime_, point, callbacks_.links, &body);
  }

  /// The limit set by the NIC ports of all PEs that measure. The same on all PEs.
  /// @param on_one_machine the reason to give if all PEs are on one machine; "": no GPU takes part
  FoundLimit limit_of_ports(const Point& point, const std::vector<PathUse>& uses,
                            const std::string& on_one_machine) const {
    std::vector<std::uint64_t> machines;
    for (const PeHost& host : runtime_.placement().hosts)
      machines.push_back(host.machine_id);
    if (!leaves_machines(point, machines)) {
      const bool together =
          std::all_of(machines.begin(), machines.end(),
                      [&](std::uint64_t machine) { return machine == machines.front(); });
      return {std::nullopt,
              together && !on_one_machine.empty() ? on_one_machine : why_no_wire(point, machines)};
    }
    std::vector<PortUse> ports;
    for (const PathUse& use : uses)
      if (use.measures)
        ports.insert(ports.end(), use.ports.begin(), use.ports.end());
    if (auto limit = link_limit(ports))
      return {std::move(limit), ""};
    return {std::nullopt, "no limit is known for the ports that carried it: the node model does "
                          "not report the rate of one, or one has no wire"};
  }

  /// For each thread, by name, its largest share of a core on any PE ("host": on PEs that measure).
  static std::map<std::string, double> most_cores(const std::vector<PathUse>& uses) {
    std::map<std::string, double> most;
    for (const PathUse& use : uses)
      for (const auto& [name, share] : use.cores)
        if (use.measures || name != measuring_thread)
          most[name] = std::max(most[name], share);
    return most;
  }

  /// Adds a finding if the samples show a stall; only on PE 0, whose barriers notice a pause of any
  /// PE. Also adds up the case's TCP counters: once for each network namespace, because the kernel
  /// counts by namespace.
  void check_for_stall(const std::vector<double>& sample_s, const std::vector<PathUse>& uses,
                       const std::string& words) {
    const std::vector<PeHost>& hosts = runtime_.placement().hosts;
    std::vector<std::string> again;
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
    for (std::size_t pe = 0; pe < uses.size(); ++pe) {
      if (!uses[pe].over_tcp ||
          !seen.insert({hosts[pe].machine_id, hosts[pe].network_namespace}).second)
        continue;
      add_to(tcp_[pe], uses[pe].tcp);
      if (uses[pe].tcp.sent_again.value_or(0) > 0)
        again.push_back(fmt::format("{} sent {} TCP segments again", hosts[pe].host_name,
                                    *uses[pe].tcp.sent_again));
    }
    if (const auto stall = find_stall(sample_s))
      findings_.push_back(stall_finding(
          words, *stall, to_text(rows_.back().path.value_or(RowPath{})), join(again, ", ")));
  }

  Usage usage() const {
    return read_usage(sysroot_, interference_.cpu,
                      static_cast<double>(SteadyClock().now_ns()) * 1e-9);
  }

  /// Collective: the windows of all PEs, by PE; empty for a run without a duration.
  std::vector<std::vector<double>> gather_windows(const std::vector<double>& own) const {
    std::vector<std::vector<double>> by_pe;
    if (!(effort_.duration_s > 0))
      return by_pe;
    for (const std::string& text :
         runtime_.gather_text(fmt::format("{:.6g}", fmt::join(own, " ")))) {
      by_pe.emplace_back();
      for (const std::string& word : split_blanks(text))
        by_pe.back().push_back(parse_number(word).value_or(0));
    }
    return by_pe;
  }

  /// Collective: why the case cannot run, as the first PE with a reason says; "" if all can.
  std::string why_not(const Case& body) const {
    const std::vector<std::string> reasons = runtime_.gather_text(body.cannot_run(runtime_));
    for (std::size_t pe = 0; pe < reasons.size(); ++pe)
      if (!reasons[pe].empty())
        return "PE " + std::to_string(pe) + ": " + reasons[pe];
    return "";
  }

  void skip(const Point& point, const std::string& reason) {
    SamplePlan plan;
    plan.measured = false;
    if (runtime_.pe() == 0)
      rows_.push_back(make_row({entry_.info,
                                point,
                                runtime_.n_pes(),
                                plan,
                                {},
                                {Verified::unchecked, reason, {}},
                                1,
                                {},
                                {}}));
  }

  /// Adds the row and the point's findings. Only on PE 0.
  void conclude(const PointResult& outcome, const std::string& words) {
    rows_.push_back(make_row(outcome));
    for (const WrongByte& wrong : outcome.verification.wrong)
      findings_.push_back({"bench-corrupt", Severity::error, words,
                           "wrong data after the timed loop: " + describe(wrong),
                           "run shmemctl bringup; if every pair passes there, report this"});
    if (const auto cost = added_cost(outcome.samples); cost && outcome.info.group == proxy_group)
      findings_.push_back(
          {"bench-proxy-cost", Severity::info, words,
           fmt::format("{} {}: {:.3f} us through the proxy, {:.3f} us by the same call without it: "
                       "{:+.3f} us for each operation",
                       outcome.info.name, format_size_bytes(outcome.point.size_bytes),
                       cost->operation_us, cost->reference_us, cost->added_us),
           "docs/explanation/proxy.md says what that is made of; SHMEMCTL_PROXY_THREADS and "
           "SHMEMCTL_PROXY_CPUS "
           "change it"});
    if (const auto drift = find_drift(outcome.samples)) {
      ++drifting_points_;
      if (!worst_drift_ || std::abs(drift->change) > std::abs(worst_drift_->change)) {
        worst_drift_ = drift;
        worst_drift_at_ = words;
      }
    }
    if (outcome.plan.noise > effort_.max_noise) {
      ++noisy_points_;
      worst_noise_ = std::max(worst_noise_, outcome.plan.noise);
    }
    const double error =
        outcome.plan.shortest_ns / lengths_of_timer_error / std::max(outcome.plan.sample_ns, 1.0);
    if (outcome.plan.measured && error > 1 / lengths_of_timer_error) {
      ++short_points_;
      worst_error_ = std::max(worst_error_, error);
    }
  }

  void add_findings(const std::vector<Interference>& interference) {
    if (runtime_.pe() != 0)
      return;
    const std::string subject = "bench " + entry_.info.name;
    if (const auto finding = interference_finding(subject, interference))
      findings_.push_back(*finding);
    if (const auto finding = above_limit_finding(subject, rows_))
      findings_.push_back(*finding);
    std::vector<std::pair<std::string, TcpCounters>> tcp;
    for (const auto& [pe, counters] : tcp_)
      tcp.emplace_back(runtime_.placement().hosts[pe].host_name, counters);
    if (const auto finding = tcp_finding(subject, tcp))
      findings_.push_back(*finding);
    const auto points = [this](int count) {
      return fmt::format("{} of {} points", count, points_.size());
    };
    if (worst_drift_)
      findings_.push_back(
          {"bench-drift", Severity::warning, subject,
           fmt::format("the second half of the samples differs from the first by "
                       "more than their spread at {}, most at {} on PE {}: {:+.1f}%",
                       points(drifting_points_), worst_drift_at_, worst_drift_->pe,
                       worst_drift_->change * 100),
           "measure longer (-D 5) on a machine that does nothing else"});
    if (noisy_points_ > 0)
      findings_.push_back(
          {"bench-noisy", Severity::warning, subject,
           fmt::format("p50 is certain only to within {:.1f}% at {}; --max-noise asks for {:g}%",
                       worst_noise_ * 100, points(noisy_points_), effort_.max_noise * 100),
           "measure longer (-D 60) on an idle machine, or pass a larger --max-noise"});
    for (Finding& finding : slow_pair_findings(subject, rows_))
      findings_.push_back(std::move(finding));
    if (short_points_ > 0)
      findings_.push_back({"bench-short-samples", Severity::warning, subject,
                           fmt::format("samples of so few iterations are too short for the clock "
                                       "at {}: wrong by up to {:.1f}%",
                                       points(short_points_), worst_error_ * 100),
                           "leave -n out, or give a larger one"});
  }

  Runtime& runtime_;
  const BenchCase& entry_;
  const std::vector<Point>& points_;
  const Effort& effort_;
  std::uint64_t seed_;
  const EngineCallbacks& callbacks_;
  Findings& findings_;
  const EngineClock& clock_;
  const Sysroot sysroot_;
  Interference interference_;
  JobMemory job_;
  ArenaMemory memory_;
  std::vector<ResultRow> rows_;
  std::uint64_t rows_seen_ = 0;
  std::optional<Drift> worst_drift_;
  std::string worst_drift_at_;
  int drifting_points_ = 0, short_points_ = 0, noisy_points_ = 0;
  double worst_error_ = 0, worst_noise_ = 0;
  /// Summed counters of each network namespace, by its first PE.
  std::map<std::size_t, TcpCounters> tcp_;
};

} // namespace

std::vector<ResultRow> measure_case(Runtime& runtime, const BenchCase& bench_case,
                                    const std::vector<Point>& points, const Effort& effort,
                                    std::uint64_t seed, const EngineCallbacks& callbacks,
                                    Findings& findings) {
  const SteadyClock clock;
  return measure_case(runtime, bench_case, points, effort, seed, callbacks, findings,
                      {&clock, measure_timer(clock)});
}

std::vector<ResultRow> measure_case(Runtime& runtime, const BenchCase& bench_case,
                                    const std::vector<Point>& points, const Effort& effort,
                                    std::uint64_t seed, const EngineCallbacks& callbacks,
                                    Findings& findings, const EngineClock& clock) {
  if (points.empty())
    return {};
  return CaseRun(runtime, bench_case, points, effort, seed, callbacks, findings, clock).run();
}

bool any_failed(Runtime& runtime, const std::vector<ResultRow>& rows) {
  bool failed = false;
  for (const ResultRow& row : rows)
    failed = failed || row.status == RowStatus::fail;
  for (const std::string& text : runtime.gather_text(failed ? "failed" : ""))
    failed = failed || !text.empty();
  return failed;
}

} // namespace shmemctl::bench
