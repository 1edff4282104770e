#include "src/model/topo/pci_address.h"

#include <cstdio>

#include "src/base/text.h"

namespace shmemctl {

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  auto hex = [](std::string_view part, std::size_t max_digits,
                long long max) -> std::optional<long long> {
    if (part.empty() || part.size() > max_digits ||
        part.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
      return std::nullopt;
    const std::optional<long long> value = parse_integer(part, 16);
    return value && *value <= max ? value : std::nullopt;
  };
  const auto parts = split(text, ':');
  if (parts.size() != 2 && parts.size() != 3)
    return std::nullopt;
  const std::string zero = "0";
  const auto last = split(parts.back(), '.');
  if (last.size() > 2)
    return std::nullopt;
  const auto domain = hex(parts.size() == 3 ? parts[0] : zero, 8, 0xffffffffLL);
  const auto bus = hex(parts[parts.size() - 2], 2, 0xff);
  const auto device = hex(last[0], 2, 31);
  const auto function = hex(last.size() == 2 ? last[1] : zero, 1, 7);
  if (!domain || !bus || !device || !function)
    return std::nullopt;
  return PciAddress{static_cast<std::uint32_t>(*domain), static_cast<std::uint8_t>(*bus),
                    static_cast<std::uint8_t>(*device), static_cast<std::uint8_t>(*function)};
}

std::string to_string(const PciAddress& address) {
  char text[24];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", address.domain, address.bus, address.device,
                address.function);
  return text;
}

} // namespace shmemctl
