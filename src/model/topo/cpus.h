// Sets of CPUs and the layout of a node's CPUs.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/sysroot.h"

namespace shmemctl {

/// No machine has as many CPUs (Linux's limit is 8192); a text with a higher number is refused.
inline constexpr int max_cpus = 16384;

/// A set of CPU numbers from 0 to max_cpus - 1, kept as ranges, so that it is small for any input.
class CpuSet {
public:
  /// CPUs `first` to `last`, both included.
  struct Range {
    int first = 0;
    int last = 0;
    bool operator==(const Range&) const = default;
  };

  CpuSet() = default;
  CpuSet(std::initializer_list<int> cpus);

  /// Adds `first` to `last`; numbers out of range are ignored.
  void add(int first, int last);
  void add(int cpu) { add(cpu, cpu); }
  void add(const CpuSet& other);

  bool empty() const { return ranges_.empty(); }
  int first() const { return ranges_.front().first; } ///< the set must not be empty
  int last() const { return ranges_.back().last; }    ///< the set must not be empty
  bool contains(int cpu) const;
  /// Ascending, not adjacent, not empty.
  const std::vector<Range>& ranges() const { return ranges_; }
  /// Each CPU, ascending.
  std::vector<int> cpus() const;

  bool operator==(const CpuSet&) const = default;

private:
  std::vector<Range> ranges_;
};

/// CPUs that are in both.
CpuSet intersection(const CpuSet& left, const CpuSet& right);

/// Linux's cpulist: "0-15,64-79", "3", "" (no CPU). Empty if it is malformed or contains a CPU from
/// max_cpus on.
std::optional<CpuSet> parse_cpulist(std::string_view text);
std::string format_cpulist(const CpuSet& cpus);

/// Linux's cpumap, which NCCL calls affinity: 32-bit words in hexadecimal, the highest first:
/// "00000000,000000ff". Empty if it is malformed or contains a CPU from max_cpus on.
std::optional<CpuSet> parse_cpumap(std::string_view text);
/// With the minimum number of words, at least one.
std::string format_cpumap(const CpuSet& cpus);

/// hwloc's bitmap: the same words with the prefix 0x, or empty for zero: "0x0000ffff,,0xffffffff".
/// Empty if it is malformed, infinite ("0xf...f") or too large.
std::optional<CpuSet> parse_hwloc_bitmap(std::string_view text);
std::string format_hwloc_bitmap(const CpuSet& cpus);

struct CpuLayout {
  std::vector<CpuSet> cores; ///< physical cores: the CPUs (hardware threads) of each
  std::map<int, int> numa;   ///< NUMA node by CPU; a CPU that no node lists is missing
  /// The NUMA node that contains all of these CPUs; empty if there is none.
  std::optional<int> numa_of(const CpuSet& cpus) const;
};
/// From /sys/devices/system. A CPU whose siblings are unknown counts as a core.
CpuLayout read_cpu_layout(const Sysroot& sysroot);

/// What plan_cpus() knows about one PE of a machine.
struct PinRequest {
  CpuSet allowed;
  int numa = -1; ///< NUMA node on which it runs and has its memory; -1 if unknown
};
/// The CPU of each PE; -1 for a PE that may use none. A PE that may use only one core stays on it.
/// The others get distinct physical cores as long as there are any (of their own NUMA node first),
/// then distinct hardware threads, then they share.
std::vector<int> plan_cpus(const std::vector<PinRequest>& requests, const CpuLayout& layout);

/// "0,2,4-6" in the order written: by local rank. Empty if it is malformed or has no CPU, names
/// more than max_cpus CPUs in all, or a CPU number that no machine has.
std::optional<std::vector<int>> parse_pin_list(const std::string& text);

} // namespace shmemctl
