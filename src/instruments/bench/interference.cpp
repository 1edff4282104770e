#include "src/instruments/bench/interference.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <sched.h>
#include <unistd.h>
#include <utility>

#include "src/base/text.h"
#include "src/instruments/bench/pinning.h"
#include "src/instruments/bench/timer.h"

namespace shmemctl::bench {

namespace {

constexpr double much_waited = 0.01, much_stolen = 0.01, much_beside = 0.10, much_faster = 1.05;
/// Two hardware threads that are both busy share their core about equally.
constexpr double share_of_sibling = 0.5;
/// The difference of two readings of a tick counter is off by up to one tick in either direction.
constexpr double random_ticks = 2;

double tick_s() {
  const long per_second = ::sysconf(_SC_CLK_TCK);
  return per_second > 0 ? 1.0 / static_cast<double>(per_second) : 0.01;
}

void add_to(std::optional<double>& sum, double value) {
  sum = sum.value_or(0) + value;
}

/// The increase of a counter. Counters of a core that was taken offline start again at 0; such a
/// decrease counts as no time.
std::uint64_t grown(std::uint64_t before, std::uint64_t after) {
  return after > before ? after - before : 0;
}

void add_to(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& before,
            const std::optional<std::uint64_t>& after) {
  if (before && after)
    sum = sum.value_or(0) + grown(*before, *after);
}

/// What disturbed one PE.
struct Disturbance {
  std::string words; ///< "" if nothing did
  /// About how much of the PE's work the disturbances that `words` names may have cost, as a share
  /// of its time.
  double share = 0;
  std::uint64_t throttles = 0; ///< it is not known what these cost

  /// Ranks PEs to find the one that was disturbed most.
  bool is_worse_than(const Disturbance& other) const {
    return std::pair(share, throttles) > std::pair(other.share, other.throttles);
  }
};

Disturbance disturbance_of(const Interference& found) {
  Disturbance result;
  std::vector<std::string> words;
  const auto share = [&](const std::optional<double>& time_s) {
    return time_s && found.wall_s > 0 ? std::min(*time_s / found.wall_s, 1.0) : 0;
  };
  const double noise = random_ticks * tick_s() / std::max(found.wall_s, 1e-9);
  const double waited = share(found.waited_s), stolen = share(found.stolen_s),
               beside = share(found.sibling_s);
  if (waited > much_waited) {
    words.push_back(
        fmt::format("it waited {:.0f}% of the time for a core that others used", waited * 100));
    result.share += waited;
  }
  if (stolen > much_stolen + noise) {
    words.push_back(fmt::format("the hypervisor took {:.0f}%", stolen * 100));
    result.share += stolen;
  }
  if (beside > much_beside + noise) {
    words.push_back(
        fmt::format("the core's other hardware thread was busy for {:.0f}%", beside * 100));
    result.share += beside * share_of_sibling;
  }
  if (found.slowest_MHz && found.fastest_MHz &&
      *found.fastest_MHz > much_faster * *found.slowest_MHz) {
    words.push_back(fmt::format("the clock moved between {:.0f} and {:.0f} MHz", *found.slowest_MHz,
                                *found.fastest_MHz));
    result.share += 1 - *found.slowest_MHz / *found.fastest_MHz;
  }
  if (found.throttles.value_or(0) > 0) {
    words.push_back(fmt::format("the core was throttled {} times", *found.throttles));
    result.throttles = *found.throttles;
  }
  if (!words.empty() && found.switches.value_or(0) > 0)
    words.push_back(fmt::format("{} involuntary context switches", *found.switches));
  result.words = join(words, ", ");
  return result;
}

} // namespace

void Interference::add(const Usage& before, const Usage& after) {
  wall_s += std::max(after.at_s - before.at_s, 0.0);
  if (before.thread && after.thread)
    add_to(waited_s,
           static_cast<double>(grown(before.thread->wait_ns, after.thread->wait_ns)) * 1e-9);
  if (before.core && after.core) {
    const std::uint64_t stolen = grown(before.core->steal, after.core->steal);
    double time_s = static_cast<double>(stolen) * tick_s();
    if (cpu < 0) { // the line of all CPUs: the stolen share of all their time
      const std::uint64_t all = stolen + grown(before.core->busy, after.core->busy) +
                                grown(before.core->idle, after.core->idle);
      time_s = all == 0 ? 0
                        : static_cast<double>(stolen) / static_cast<double>(all) *
                              (after.at_s - before.at_s);
    }
    add_to(stolen_s, time_s);
  }
  if (before.siblings && after.siblings)
    add_to(sibling_s,
           static_cast<double>(grown(before.siblings->busy, after.siblings->busy)) * tick_s());
  add_to(switches, before.switches, after.switches);
  add_to(throttles, before.throttles, after.throttles);
  for (const auto& frequency : {before.frequency_MHz, after.frequency_MHz})
    if (frequency) {
      slowest_MHz = std::min(slowest_MHz.value_or(*frequency), *frequency);
      fastest_MHz = std::max(fastest_MHz.value_or(*frequency), *frequency);
    }
}

void serialize(Archive& archive, Interference& interference) {
  archive(interference.cpu, interference.wall_s, interference.waited_s, interference.stolen_s,
          interference.sibling_s, interference.switches, interference.throttles,
          interference.slowest_MHz, interference.fastest_MHz);
}

InterferenceWatch::InterferenceWatch() : cpu_(bound_cpu()), before_(usage()) {}

Interference InterferenceWatch::end() const {
  Interference interference;
  interference.cpu = cpu_;
  interference.add(before_, usage());
  return interference;
}

Usage InterferenceWatch::usage() const {
  return read_usage(sysroot_, cpu_, static_cast<double>(SteadyClock().now_ns()) * 1e-9);
}

bool hides_who_is_slow(const std::vector<Interference>& by_pe) {
  constexpr double much_lost = 0.1;
  return std::any_of(by_pe.begin(), by_pe.end(), [](const Interference& found) {
    return found.waited_s.value_or(0) + found.stolen_s.value_or(0) > much_lost * found.wall_s;
  });
}

std::optional<Finding> interference_finding(const std::string& subject,
                                            const std::vector<Interference>& by_pe) {
  std::size_t disturbed = 0, worst = 0;
  Disturbance most;
  for (std::size_t pe = 0; pe < by_pe.size(); ++pe) {
    Disturbance disturbance = disturbance_of(by_pe[pe]);
    if (disturbance.words.empty())
      continue;
    if (disturbed == 0 || disturbance.is_worse_than(most)) {
      worst = pe;
      most = std::move(disturbance);
    }
    ++disturbed;
  }
  if (disturbed == 0)
    return std::nullopt;
  std::string who = "PE " + std::to_string(worst);
  if (by_pe[worst].cpu >= 0)
    who += " on CPU " + std::to_string(by_pe[worst].cpu);
  std::string message = who + ": " + most.words;
  if (disturbed > 1)
    message +=
        fmt::format("; {} more PE{} disturbed", disturbed - 1, disturbed == 2 ? " was" : "s were");
  return Finding{"bench-interference", Severity::warning, subject, message,
                 "measure on a machine that does nothing else; trust min and p50, not p99 and max"};
}

namespace {

std::optional<std::uint64_t> number(std::string_view text) {
  const auto value = parse_integer(text);
  if (!value || *value < 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

/// The fields after `word` on the first line of `text` that starts with it; nullopt if none does.
std::optional<std::vector<std::string>> line_of(std::string_view text, std::string_view word) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.size() <= word.size() || line.substr(0, word.size()) != word ||
        (line[word.size()] != ' ' && line[word.size()] != '\t'))
      continue;
    return split_blanks(line.substr(word.size()));
  }
  return std::nullopt;
}

/// The summed ticks of the other hardware threads of the CPU's core.
std::optional<CpuTicks> sibling_ticks(const Sysroot& sysroot, const std::string& stat, int cpu) {
  const auto text = sysroot.read_line("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                                      "/topology/thread_siblings_list");
  const auto cpus = text ? parse_cpulist(*text) : std::nullopt;
  std::optional<CpuTicks> sum;
  if (!cpus)
    return sum;
  for (const int sibling : cpus->cpus())
    if (const auto ticks = parse_cpu_ticks(stat, sibling); ticks && sibling != cpu) {
      if (!sum)
        sum = CpuTicks{};
      sum->busy += ticks->busy;
      sum->idle += ticks->idle;
    }
  return sum;
}

} // namespace

std::optional<CpuTicks> parse_cpu_ticks(std::string_view stat, int cpu) {
  const auto fields = line_of(stat, cpu < 0 ? "cpu" : "cpu" + std::to_string(cpu));
  constexpr std::size_t known = 8; // user nice system idle iowait irq softirq steal
  if (!fields || fields->size() < known)
    return std::nullopt;
  std::uint64_t values[known];
  for (std::size_t i = 0; i < known; ++i) {
    const auto value = number((*fields)[i]);
    // Sums of these values must not overflow.
    if (!value || *value > std::numeric_limits<std::uint64_t>::max() / 16)
      return std::nullopt;
    values[i] = *value;
  }
  return CpuTicks{values[0] + values[1] + values[2] + values[5] + values[6], values[3] + values[4],
                  values[7]};
}

std::optional<ThreadTimes> parse_schedstat(std::string_view text) {
  const std::vector<std::string> fields = split_blanks(trim(text));
  if (fields.size() != 3)
    return std::nullopt;
  const auto run = number(fields[0]), wait = number(fields[1]);
  if (!run || !wait)
    return std::nullopt;
  return ThreadTimes{*run, *wait};
}

std::optional<std::uint64_t> parse_involuntary_switches(std::string_view status) {
  const auto fields = line_of(status, "nonvoluntary_ctxt_switches:");
  if (!fields || fields->size() != 1)
    return std::nullopt;
  return number(fields->front());
}

int bound_cpu() {
  const CpuSet cpus = thread_affinity();
  return !cpus.empty() && cpus.first() == cpus.last() ? cpus.first() : -1;
}

Usage read_usage(const Sysroot& sysroot, int cpu, double at_s) {
  Usage usage;
  usage.at_s = at_s;
  constexpr std::size_t largest_stat = std::size_t{8} << 20; // a line for each CPU and interrupt
  if (const auto stat = sysroot.read("/proc/stat", largest_stat)) {
    usage.core = parse_cpu_ticks(*stat, cpu);
    if (cpu >= 0)
      usage.siblings = sibling_ticks(sysroot, *stat, cpu);
  }
  if (const auto text = sysroot.read("/proc/thread-self/schedstat"))
    usage.thread = parse_schedstat(*text);
  if (const auto text = sysroot.read("/proc/thread-self/status"))
    usage.switches = parse_involuntary_switches(*text);
  if (cpu < 0)
    return usage;
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
  if (const auto kHz = sysroot.read_integer(folder + "/cpufreq/scaling_cur_freq"); kHz && *kHz > 0)
    usage.frequency_MHz = static_cast<double>(*kHz) / 1000;
  if (const auto count = sysroot.read_integer(folder + "/thermal_throttle/core_throttle_count");
      count && *count >= 0)
    usage.throttles = static_cast<std::uint64_t>(*count);
  return usage;
}

} // namespace shmemctl::bench
