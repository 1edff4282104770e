// The address of a PCI function: domain:bus:device.function.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shmemctl {

struct PciAddress {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;   ///< 0..31
  std::uint8_t function = 0; ///< 0..7

  auto operator<=>(const PciAddress&) const = default;
};

/// "0000:18:00.0", "00000000:18:00.0" (NVML), "18:00.0" (lspci), "18:00" (function 0); hexadecimal
/// in either case; domains of up to 8 digits (Hyper-V, VMD). Empty for anything else, including a
/// device over 1f or a function over 7.
std::optional<PciAddress> parse_pci_address(std::string_view text);

/// "0000:18:00.0"; at least four digits of domain, lower case, as the kernel writes it.
std::string to_string(const PciAddress& address);

} // namespace shmemctl
