// Counters of a NIC: the text that a driver or the kernel prints for one, and the difference
// between two readings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl {

/// One counter read from text: a value, or the reason why there is none.
struct CounterText {
  std::optional<std::uint64_t> value; ///< at most 2^63 - 1
  std::string problem;                ///< "reads \"N/A (no PMA)\""; "" if there is a value
};

/// A counter file's content: one whole number, with blanks around it. Any bytes give a value or a
/// problem. Negative numbers and those from 2^63 on (-1 as drivers print it) are no counts.
CounterText parse_counter_text(std::string_view text);

struct NamedCounter {
  std::string name;
  CounterText text;
};
/// Lines "name: value" as `ethtool -S` prints them; lines of another form are passed over, and of a
/// name that comes twice the first counts. At most 4096 lines are read.
std::vector<NamedCounter> parse_ethtool_text(std::string_view text);

/// The driver's own statistics of a network interface of this machine; empty if it has none, or
/// may not be asked.
std::vector<NamedCounter> read_ethtool(const std::string& netdev);

/// What one counter did between two readings: its increment, or the reason why it is unknown.
struct CounterStep {
  std::optional<std::int64_t> delta;
  std::string problem;  ///< "went back from 9 to 3: it was reset"; "" if there is a delta
  bool wrapped = false; ///< passed 2^32, once or more often
};
/// A counter that went back has gone round if it was near 2^32 (what it counts in that unit), and
/// was reset otherwise. One that stays at the largest value of its width (IBA's PortCounters are of
/// 4 to 32 bits and stay there) is saturated and gives no increment.
CounterStep counter_step(const std::string& counter, std::uint64_t before, std::uint64_t after);

/// What one step of a counter is in its name's unit: 4 bytes for port_xmit_data_bytes.
std::uint64_t counter_step_bytes(const std::string& counter);

enum class WireDirection { sent, received };

} // namespace shmemctl
