// Sets of CPU numbers in the two notations that tools use.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl {

/// No machine has more CPUs (Linux stops at 8192); a set that names more is refused.
inline constexpr int max_cpus = 16384;

/// CPU numbers, ascending, each once.
using CpuSet = std::vector<int>;

/// Linux's cpulist: "0-15,64-79". Nothing if it is malformed or names a CPU from max_cpus on.
std::optional<CpuSet> parse_cpu_set(std::string_view text);
std::string format_cpu_set(const CpuSet& cpus);

/// hwloc's bitmap: 32-bit words in hexadecimal, the highest first, with empty words for zero:
/// "0x0000ffff,,0xffffffff". Nothing if it is malformed, infinite ("0xf...f") or too large.
std::optional<CpuSet> parse_hwloc_bitmap(std::string_view text);
std::string format_hwloc_bitmap(const CpuSet& cpus);

} // namespace shmemctl
