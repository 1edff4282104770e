// Readers of what the kernel counts.
#include <cctype>
#include <limits>
#include <sched.h>

#include "src/base/text.h"
#include "src/bench/interference.h"
#include "src/bench/pinning.h"

namespace shmemctl::bench {

namespace {

std::optional<std::uint64_t> number(std::string_view text) {
  const auto value = parse_integer(text);
  if (!value || *value < 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

/// The line's fields behind its first word; nothing if no line starts with that word.
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

/// The hardware threads beside this one.
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
    // Sums of these must fit.
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
