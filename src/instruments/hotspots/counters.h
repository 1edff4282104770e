// Counters of a NIC: the text that a driver or the kernel prints for one, and the difference
// between two readings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl {

/// One counter parsed from text: a value, or the reason why there is none.
struct CounterText {
  std::optional<std::uint64_t> value; ///< at most 2^63 - 1
  std::string problem;                ///< "reads \"N/A (no PMA)\""; "" if there is a value
};

/// A counter file's content: one integer, optionally surrounded by blanks. Any bytes give a value
/// or a problem. Negative numbers and values from 2^63 on (-1 as drivers print it) are not counts.
CounterText parse_counter_text(std::string_view text);

struct NamedCounter {
  std::string name;
  CounterText text;
};
/// Lines "name: value" as `ethtool -S` prints them; other lines are ignored, and the first of two
/// lines with the same name counts. At most 4096 lines are read.
std::vector<NamedCounter> parse_ethtool_text(std::string_view text);

/// The driver's own statistics of a network interface of this machine; empty if it has none or
/// permission is denied.
std::vector<NamedCounter> read_ethtool(const std::string& netdev);

/// What one counter did between two readings: its increment, or the reason why it is unknown.
struct CounterStep {
  std::optional<std::int64_t> delta;
  std::string problem;  ///< "went back from 9 to 3: it was reset"; "" if there is a delta
  bool wrapped = false; ///< passed 2^32, once or more often
};
/// A counter that decreased has wrapped if it went from the last quarter of 2^32 (in units of that
/// counter) to the first, and was reset otherwise. One that stays at the maximum of its width
/// (IBA's PortCounters have 4 to 32 bits and saturate) gives no increment.
CounterStep counter_step(const std::string& counter, std::uint64_t before, std::uint64_t after);

/// Bytes of one count of the device: 4 for port_xmit_data_bytes, port_rcv_data_bytes; others: 1.
std::uint64_t counter_step_bytes(const std::string& counter);

enum class WireDirection { sent, received };

} // namespace shmemctl
