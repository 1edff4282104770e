// All unit conversions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shmemctl {

/// Parses "8", "4K", "2M", "1.5G", "1T" to bytes (powers of 1024, upper or lower case, with an
/// optional "B" or "iB" after the letter); empty if the text is not a size or the value exceeds 63
/// bits.
std::optional<std::uint64_t> parse_size_bytes(std::string_view text);
/// The shortest exact form: 4096 -> "4K", 1000 -> "1000".
std::string format_size_bytes(std::uint64_t size_bytes);

/// Parses "90", "90s", "500ms", "30m", "8h", "2d" to seconds, fractions too; empty for any other
/// text, and for a value that is negative or not finite.
std::optional<double> parse_duration_s(std::string_view text);

/// Raw rate of a PCIe link in each direction, in GB/s (10^9 B/s): before the overhead of packets,
/// after line coding (8b/10b up to 5 GT/s, 128b/130b from 8 GT/s, 242B/256B FLIT from 64 GT/s: PCIe
/// 6.0 base spec).
double pcie_bandwidth_GBps(double speed_GTps, int width);

/// "32.0 GT/s PCIe", "32 GT/s", "8.0 GT/s PCIe" -> 32.0; empty for "Unknown" and the like.
std::optional<double> parse_link_speed_GTps(std::string_view text);

} // namespace shmemctl
