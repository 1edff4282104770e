// Parsers for the small texts below /proc that checks read. Any bytes are survived.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl::doctor {

/// The numbers of a dotted version at the start of `text`: "6.8.0-45-generic" -> 6, 8, 0. At most
/// four; empty if it starts with none.
std::vector<int> version_numbers(std::string_view text);

/// What follows `key` at the start of a line, trimmed: field_of(status, "CapEff:").
std::optional<std::string> field_of(std::string_view text, std::string_view key);

/// One row of /proc/<pid>/limits. Nothing as a value means "unlimited".
struct Limit {
  std::optional<std::uint64_t> soft, hard;
  std::string text; ///< "8388608 8388608 bytes"
};
/// The row of that name ("Max locked memory"); nothing if it is missing or malformed.
std::optional<Limit> find_limit(std::string_view limits, std::string_view name);

/// A mount point's last row in /proc/mounts.
struct Mount {
  std::string type;
  std::string options;
};
std::optional<Mount> find_mount(std::string_view mounts, std::string_view mount_point);
/// The value of "size=65536k" in mount options, in bytes; percentages are not sizes.
std::optional<std::uint64_t> mount_size_bytes(std::string_view options);

/// The kernel module's version in /proc/driver/nvidia/version.
struct NvidiaVersion {
  std::string version; ///< "550.54.15"
  bool open_modules = false;
};
std::optional<NvidiaVersion> parse_nvidia_version(std::string_view text);

/// A registry key of the NVIDIA driver in /proc/driver/nvidia/params: RegistryDwords is a list
/// "Name=value;Name=value". The last one counts.
std::optional<long long> registry_dword(std::string_view params, std::string_view key);

/// The word in brackets: "always [madvise] never" -> "madvise".
std::optional<std::string> selected_word(std::string_view text);

} // namespace shmemctl::doctor
