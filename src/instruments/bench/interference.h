// What disturbed this PE's thread and core while it measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/archive.h"
#include "src/base/finding.h"
#include "src/base/sysroot.h"
#include "src/model/topo/cpus.h"

namespace shmemctl::bench {

/// One line of /proc/stat, in clock ticks (usually 1/100 s).
struct CpuTicks {
  std::uint64_t busy = 0; ///< user, nice, system, irq, softirq
  std::uint64_t idle = 0; ///< idle, iowait
  std::uint64_t steal = 0;
};
/// Parses the line "cpuN", or "cpu" (all CPUs together) for -1. Nothing if it is missing or
/// malformed.
std::optional<CpuTicks> parse_cpu_ticks(std::string_view stat, int cpu);

/// Times of a thread, from /proc/<thread>/schedstat.
struct ThreadTimes {
  std::uint64_t run_ns = 0;
  /// Time that the thread was ready to run while its core ran other threads.
  std::uint64_t wait_ns = 0;
};
std::optional<ThreadTimes> parse_schedstat(std::string_view text);
/// The value of "nonvoluntary_ctxt_switches" in /proc/<thread>/status.
std::optional<std::uint64_t> parse_involuntary_switches(std::string_view status);

/// What the kernel has counted so far for the calling thread and its core.
struct Usage {
  double at_s = 0;
  /// Ticks of the CPU that the thread is bound to; of all CPUs if it is not bound to one.
  std::optional<CpuTicks> core;
  std::optional<CpuTicks> siblings; ///< ticks of the other hardware threads of the core, summed
  std::optional<ThreadTimes> thread;
  std::optional<std::uint64_t> switches;
  std::optional<double> frequency_MHz;
  std::optional<std::uint64_t> throttles;
};
/// The CPU that the calling thread is bound to; -1 if it may use several.
int bound_cpu();
/// @param cpu result of bound_cpu()
Usage read_usage(const Sysroot& sysroot, int cpu, double at_s);

/// The changes between two readings of Usage, summed over the points of a case. Values that the
/// kernel does not report are missing, not 0.
struct Interference {
  int cpu = -1;
  double wall_s = 0;
  std::optional<double> waited_s;  ///< time that the thread waited for its core
  std::optional<double> stolen_s;  ///< time taken by the hypervisor
  std::optional<double> sibling_s; ///< time that the core's other hardware threads were busy
  std::optional<std::uint64_t> switches, throttles;
  std::optional<double> slowest_MHz, fastest_MHz;

  void add(const Usage& before, const Usage& after);
};
void serialize(Archive& archive, Interference& interference);

/// Watches the thread that constructs it, from then until end(), which that thread must call.
class InterferenceWatch {
public:
  InterferenceWatch();
  Interference end() const;

private:
  Usage usage() const;

  Sysroot sysroot_;
  int cpu_;
  Usage before_;
};

/// Returns `bench-interference` for the PEs that were disturbed: more than 1 % of the time waiting
/// for the core or stolen, more than 10 % next to a busy hardware thread, a frequency that changed
/// by more than 5 %, or a throttled core.
/// @param by_pe interference of each PE
std::optional<Finding> interference_finding(const std::string& subject,
                                            const std::vector<Interference>& by_pe);

/// Whether a PE lost more than a tenth of its time to other threads or the hypervisor. Then the
/// waits between PEs show when each PE had its core, and not which PE is slow.
bool hides_who_is_slow(const std::vector<Interference>& by_pe);

} // namespace shmemctl::bench
