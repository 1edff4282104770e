// The cores of a machine, as far as pinning needs them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/sysroot.h"
#include "src/topo/cpu_set.h"

namespace shmemctl {

struct CpuLayout {
  std::vector<CpuSet> cores; ///< physical cores: the CPUs (hardware threads) of each
  std::map<int, int> numa;   ///< by CPU; a CPU that no node lists is missing
  /// The node that all of these CPUs are in; nothing if they lie in several or in none.
  std::optional<int> numa_of(const CpuSet& cpus) const;
};
/// From /sys/devices/system. Of a CPU whose siblings are not told it says that it is a core.
CpuLayout read_cpu_layout(const Sysroot& sysroot);

/// What one PE of a machine brings to the plan.
struct PinWish {
  CpuSet allowed;
  int numa = -1; ///< where it runs and has its memory now; -1 if unknown
};
/// The CPU of each; -1 for a PE that may use none. A PE with one core only keeps to it. The others
/// get distinct physical cores as far as they go (of their own NUMA node first), then distinct
/// hardware threads, then they share.
std::vector<int> plan_cpus(const std::vector<PinWish>& wishes, const CpuLayout& layout);

/// "0,2,4-6" in the order written: by local rank. Nothing if it is malformed, empty, or names more
/// than max_cpus CPUs in all, or one that no machine has.
std::optional<std::vector<int>> parse_pin_list(const std::string& text);

} // namespace shmemctl
