// Data center bridging of a network interface: which priorities are lossless, and how traffic
// classes share the link. As the kernel's DCB interface (RTM_GETDCB of rtnetlink) tells it.
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

  /// ETS: of each traffic class its algorithm (0 strict, 2 weighted) and share in percent, and of
  /// each priority its class.
  struct Classes {
    std::array<std::uint8_t, 8> algorithm{}, share_percent{}, of_priority{};
    bool operator==(const Classes&) const = default;
  };
  std::optional<Classes> classes;
};

/// A message of rtnetlink that answers a request for the IEEE 802.1Qaz settings; empty if it is
/// another one, an error, or cut off. Any bytes are safe.
std::optional<DcbSettings> parse_dcb_reply(std::string_view message);

/// Asks the kernel; empty if the driver has no such interface or it must not be asked here. Does
/// not wait for more than a second, and does not throw.
std::optional<DcbSettings> read_dcb(const std::string& interface);

/// "3, 4" for the bits 3 and 4; "none".
std::string priorities_text(unsigned priorities);
/// "0: 50 % for 0 1 2; 3: strict for 3": of each class that a priority is in, what it gets.
std::string classes_text(const DcbSettings::Classes& classes);

} // namespace shmemctl::doctor
