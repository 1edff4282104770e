// The PCI configuration space and IOMMU group of a function, for the checks of PCIe links, of ACS
// and of the IOMMU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/base/sysroot.h"
#include "src/model/topo/pci_address.h"

namespace shmemctl::doctor {

/// The content of /sys/bus/pci/devices/<address>/config (PCIe base specification, chapter 7).
/// Without CAP_SYS_ADMIN the kernel returns only the first 64 bytes; whatever lies beyond them is
/// unknown, not absent. Safe for any bytes.
class ConfigSpace {
public:
  explicit ConfigSpace(std::string bytes) : bytes_(std::move(bytes)) {}

  std::size_t size() const { return bytes_.size(); }
  /// True if the standard capabilities (256 bytes) can be read.
  bool has_capabilities() const { return bytes_.size() >= 256; }
  /// True if the extended capabilities (beyond 256 bytes) can be read.
  bool has_extended_capabilities() const { return bytes_.size() > 256; }

  /// Offset of a capability in the first 256 bytes (0x10 is PCI Express), if it exists.
  std::optional<std::size_t> capability(std::uint8_t id) const;
  /// Offset of an extended capability (0x000d is ACS), if it exists.
  std::optional<std::size_t> extended_capability(std::uint16_t id) const;
  /// Little-endian 16 bits; empty beyond the end.
  std::optional<std::uint16_t> word(std::size_t offset) const;

  /// PCI Express Device Control, if it exists.
  std::optional<std::uint16_t> device_control() const;
  /// ACS Control, or nothing if the function has no ACS (or it cannot be read).
  std::optional<std::uint16_t> acs_control() const;

private:
  std::string bytes_;
};

/// Device Control: relaxed ordering enabled.
inline constexpr std::uint16_t devctl_relaxed_ordering = 1U << 4;
/// Max_Read_Request_Size in bytes, from Device Control.
int max_read_request_bytes(std::uint16_t device_control);
/// Bits of ACS Control that redirect traffic. Upstream forwarding is not among them, because it
/// only passes on what a bridge below has redirected.
inline constexpr std::uint16_t acs_request_redirect = 1U << 2, acs_completion_redirect = 1U << 3;

std::string config_path(const PciAddress& address);
/// Empty if the file cannot be read.
std::optional<ConfigSpace> read_config_space(const Sysroot& sysroot, const PciAddress& address);

/// The IOMMU group of a function.
struct IommuGroup {
  std::string type_path;
  std::optional<std::string> type; ///< "identity" is passthrough; empty if not reported
};
/// Empty if the function has no group, which means that no IOMMU is active for it.
std::optional<IommuGroup> iommu_group(const Sysroot& sysroot, const PciAddress& address);

} // namespace shmemctl::doctor
