// Parts of a Node that come from /sys: PCI devices and links, CPUs, GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/model/topo/node.h"

namespace shmemctl {

// Parsers for the values of sysfs and /proc attribute files. Pure functions: any bytes give a value
// or an empty optional, the latter for anything that is not understood.

/// "4: ACTIVE" (/sys/class/infiniband/*/ports/*/state) by its number: 1 down, 2 init, 3 armed,
/// 4 and 5 (ACTIVE_DEFER) active.
std::optional<PortState> parse_port_state(std::string_view text);

/// "InfiniBand", "Ethernet"; "Unknown" and "Unspecified" are what the kernel reports for a device
/// that has neither (EFA): LinkLayer::other.
std::optional<LinkLayer> parse_link_layer(std::string_view text);

/// "400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)" -> Gbit/s; empty for 0 and for other units.
std::optional<double> parse_rate_Gbps(std::string_view text);

/// "0x1a" or "26" -> 0..65535.
std::optional<int> parse_lid(std::string_view text);

/// A GID as sysfs writes it, eight groups of four hexadecimal digits, in lower case.
std::optional<std::string> parse_gid(std::string_view text);
/// True for "0000:0000:...": an empty slot.
bool is_zero_gid(std::string_view gid);

/// Lanes from current_link_width; empty for 0 and 255 (the link is down) or anything over 32.
std::optional<int> parse_link_width(std::string_view text);

/// Upper bound of the kernel's CPU, package and NUMA node numbers.
inline constexpr int max_os_index = (1 << 20) - 1;

/// MemTotal of /sys/devices/system/node/node*/meminfo or /proc/meminfo, in bytes.
std::optional<std::uint64_t> parse_memory_total_bytes(std::string_view text);

/// The value of "<key>:  value" in text of such lines, trimmed: /proc/driver/nvidia/gpus/*/
/// information and numa_status, /proc/cpuinfo. The first one wins.
std::optional<std::string> parse_field(std::string_view text, std::string_view key);

} // namespace shmemctl
