// Samples the NICs of this machine, shows them on a terminal or as log lines, and puts them into a
// report.
#include "src/instruments/hotspots/watch.h"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <thread>

#include "reports/report.h"
#include "reports/text.h"

namespace shmemctl {

namespace {

constexpr double all_counters_s =
    1; ///< interval at which all counters are read, some of which are expensive

double thread_cpu_s() {
  std::timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

nlohmann::json command_json(const WatchFacts& facts) {
  const CommandEnd& end = *facts.command;
  nlohmann::json object{{"argv", facts.argv}, {"timed_out", end.timed_out}, {"time_s", end.time_s}};
  if (end.exit_code) {
    object["exit_code"] = *end.exit_code;
  } else {
    object["exit_code"] = nullptr;
    object["exit_code_reason"] =
        end.signal.empty() ? "it has not ended" : "a signal ended it: " + end.signal;
  }
  if (!end.signal.empty())
    object["signal"] = end.signal;
  return object;
}

} // namespace

HotspotWatch::HotspotWatch(const Sysroot& sysroot, const Node& node)
    : sampler_(sysroot, node), totals_(sampler_.ports()) {}

void HotspotWatch::sample(SampleDepth depth) {
  const double before_s = thread_cpu_s();
  if (samples_++ == 0)
    first_s_ = monotonic_s();
  sampler_.read(last_, depth, monotonic_s);
  totals_.add(last_);
  if (interval_)
    interval_->add(last_);
  if (depth == SampleDepth::all)
    last_all_s_ = monotonic_s();
  if (samples_ > 1)
    cpu_s_ += thread_cpu_s() - before_s;
}

void HotspotWatch::sample() {
  sample(monotonic_s() >= last_all_s_ + all_counters_s ? SampleDepth::all : SampleDepth::load);
}

void sample_until(HotspotWatch& watch, double interval_s, const std::function<bool()>& done,
                  const std::function<void(double)>& pause, const std::function<void()>& tick) {
  double next_s = monotonic_s() + interval_s;
  while (!done()) {
    const double now_s = monotonic_s();
    if (now_s < next_s) {
      pause(next_s - now_s);
      continue;
    }
    watch.sample();
    next_s = std::max(next_s + interval_s, now_s); // a missed sample is not made up for
    tick();
  }
}

void sample_for(HotspotWatch& watch, double interval_s, double duration_s) {
  const double end_s = monotonic_s() + duration_s;
  sample_until(
      watch, interval_s, [end_s] { return monotonic_s() >= end_s; },
      [end_s](double rest_s) {
        const double until_end_s = std::max(end_s - monotonic_s(), 0.0);
        std::this_thread::sleep_for(std::chrono::duration<double>(std::min(rest_s, until_end_s)));
      },
      [] {});
  watch.sample();
}

std::optional<double> HotspotWatch::core_share() const {
  const double time_s = monotonic_s() - first_s_;
  if (samples_ < 2 || time_s <= 0)
    return std::nullopt;
  return cpu_s_ / time_s;
}

std::vector<NicCounter> counter_rows(const NodeTotals& totals, const std::string& host) {
  std::vector<NicCounter> rows;
  for (const PortTotals& port : totals.ports())
    for (const CounterTotal& total : port.counters)
      rows.push_back({host, port.port.device, total.counter, port.port.port, total.before,
                      total.after, total.delta, total.problem});
  return rows;
}

void put_section(Report& report, const Hotspots& hotspots, const NicThresholds& thresholds,
                 const WatchFacts& facts) {
  nlohmann::json object = hotspots_json(hotspots, thresholds);
  object["mode"] = facts.mode;
  object["samples"] = facts.samples;
  object["thresholds"] = thresholds.origin;
  double window_s = 0;
  for (const PortLoad& load : hotspots.loads)
    window_s = std::max(window_s, load.window_s);
  if (window_s > 0) {
    object["window_s"] = window_s;
  } else {
    object["window_s"] = nullptr;
    object["window_s_reason"] =
        hotspots.loads.empty() ? "no NIC" : "the time between the readings is unknown";
  }
  if (facts.interval_s)
    object["interval_s"] = *facts.interval_s;
  if (facts.core_share)
    object["sampling_core_share"] = *facts.core_share;
  if (facts.command)
    object["command"] = command_json(facts);
  report.hotspots = std::move(object);
}

void put_hotspots(Report& report, const Hotspots& hotspots, const NicThresholds& thresholds,
                  const WatchFacts& facts) {
  put_section(report, hotspots, thresholds, facts);
  for (Finding& finding : hotspot_findings(hotspots, thresholds))
    report.findings.push_back(std::move(finding));
}

ManyFiles::ManyFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
    return;
  before_ = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    before_.reset();
}

ManyFiles::~ManyFiles() {
  rlimit limit{};
  if (!before_ || ::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  limit.rlim_cur = *before_;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

namespace {

constexpr const char* home_and_clear = "\033[H\033[J";

std::string rate_text(const DirectionLoad& load) {
  if (!load.GBps)
    return load.packets_per_s ? fmt::format("{:.0f} packets/s", *load.packets_per_s) : "?";
  const std::string share = load.link_share ? fmt::format(" {:.0f}%", *load.link_share * 100) : "";
  return fmt::format("{:.4g} GB/s{}", *load.GBps, share);
}

std::string signs_text(const Hotspots& now, const PortLoad& load) {
  std::string text;
  for (const CounterSign& sign : now.signs)
    if (sign.host == load.host && sign.device == load.device && sign.port == load.port)
      text += fmt::format(" {} {}+{}", sign.rule->finding, safe_text(sign.counter), sign.delta);
  return text;
}

} // namespace

std::string log_lines(const Hotspots& now, const std::string& time) {
  std::string text;
  for (const PortLoad& load : now.loads)
    text += fmt::format("{} {} {} sent {} received {} {}{}{}\n", time, safe_text(load.host),
                        safe_text(load.name()), rate_text(load.sent), rate_text(load.received),
                        load.direction(), load.hot ? " HOT" : "", signs_text(now, load));
  return text;
}

void HotspotLog::show(const Hotspots& now, const NicThresholds& thresholds) {
  if (!page_) {
    out_ << log_lines(now, utc_now()) << std::flush;
    return;
  }
  const std::string page = hotspots_text(hotspots_json(now, thresholds), style_);
  out_ << home_and_clear << "shmemctl hotspots  " << utc_now() << "  (Ctrl-C ends)\n\n"
       << page << '\n'
       << findings_text(hotspot_findings(now, thresholds), style_) << std::flush;
}

} // namespace shmemctl
