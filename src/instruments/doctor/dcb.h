// Data center bridging of a network interface: which priorities are lossless, and how traffic
// classes share the link. Read from the kernel's DCB interface (RTM_GETDCB of rtnetlink).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shmemctl::doctor {

/// What the driver of an interface reports; a part that it does not report is empty.
struct DcbSettings {
  std::optional<std::uint8_t> lossless_priorities; ///< PFC: bit i is priority i

  /// ETS. By traffic class: its algorithm (0 strict, 2 weighted) and its share in percent. By
  /// priority: its traffic class.
  struct Classes {
    std::array<std::uint8_t, 8> algorithm{}, share_percent{}, of_priority{};
    bool operator==(const Classes&) const = default;
  };
  std::optional<Classes> classes;
};

/// Parses an rtnetlink message that answers a request for the IEEE 802.1Qaz settings. Empty if it
/// is a different message, an error, or cut off. Safe for any bytes.
std::optional<DcbSettings> parse_dcb_reply(std::string_view message);

/// Asks the kernel for the settings of an interface. Empty if its driver has no DCB interface or
/// the kernel refuses the query. Waits for at most one second; does not throw.
std::optional<DcbSettings> read_dcb(const std::string& interface);

/// "3, 4" if bits 3 and 4 are set; "none" if no bit is set.
std::string priorities_text(unsigned priorities);
/// Lists the classes that have a priority, each with its share and its priorities: "0: 50 % for 0 1
/// 2; 3: strict for 3".
std::string classes_text(const DcbSettings::Classes& classes);

} // namespace shmemctl::doctor
