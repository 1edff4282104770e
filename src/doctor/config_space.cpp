#include "src/doctor/config_space.h"

namespace shmemctl::doctor {

namespace {

constexpr std::size_t status_register = 0x06, capabilities_pointer = 0x34, header_bytes = 0x40,
                      extended_start = 0x100, space_bytes = 4096;
constexpr std::uint16_t status_has_capabilities = 1U << 4;
constexpr std::uint8_t pci_express_id = 0x10;
constexpr std::uint16_t acs_id = 0x000d;
// A chain cannot have more members than fit without overlap: a longer one is a circle.
constexpr int max_capabilities = (256 - 0x40) / 4;
constexpr int max_extended_capabilities = (4096 - 0x100) / 8;

} // namespace

std::optional<std::uint16_t> ConfigSpace::word(std::size_t offset) const {
  if (offset + 2 > bytes_.size())
    return std::nullopt;
  const auto low = static_cast<unsigned char>(bytes_[offset]);
  const auto high = static_cast<unsigned char>(bytes_[offset + 1]);
  return static_cast<std::uint16_t>(low | high << 8);
}

std::optional<std::size_t> ConfigSpace::capability(std::uint8_t id) const {
  if (!has_capabilities() || (*word(status_register) & status_has_capabilities) == 0)
    return std::nullopt;
  std::size_t at = *word(capabilities_pointer) & 0xfcU;
  for (int i = 0; i < max_capabilities && at >= header_bytes; ++i) {
    const std::uint16_t header = *word(at);
    if ((header & 0xffU) == id)
      return at;
    at = static_cast<std::size_t>(header >> 8) & 0xfcU;
  }
  return std::nullopt;
}

std::optional<std::size_t> ConfigSpace::extended_capability(std::uint16_t id) const {
  std::size_t at = extended_start;
  for (int i = 0; i < max_extended_capabilities && at >= extended_start; ++i) {
    const std::optional<std::uint16_t> header = word(at);
    const std::optional<std::uint16_t> next = word(at + 2);
    if (!header || !next || *header == 0 || *header == 0xffff)
      return std::nullopt;
    if (*header == id)
      return at;
    at = static_cast<std::size_t>(*next >> 4) & 0xffcU;
  }
  return std::nullopt;
}

std::optional<std::uint16_t> ConfigSpace::device_control() const {
  const std::optional<std::size_t> at = capability(pci_express_id);
  return at ? word(*at + 8) : std::nullopt;
}

std::optional<std::uint16_t> ConfigSpace::acs_control() const {
  const std::optional<std::size_t> at = extended_capability(acs_id);
  return at ? word(*at + 6) : std::nullopt;
}

int max_read_request_bytes(std::uint16_t device_control) {
  return 128 << (device_control >> 12 & 7U);
}

std::string config_path(const PciAddress& address) {
  return "/sys/bus/pci/devices/" + to_string(address) + "/config";
}

std::optional<ConfigSpace> read_config_space(const Sysroot& sysroot, const PciAddress& address) {
  std::optional<std::string> bytes = sysroot.read(config_path(address), space_bytes);
  if (!bytes)
    return std::nullopt;
  return ConfigSpace(std::move(*bytes));
}

} // namespace shmemctl::doctor
