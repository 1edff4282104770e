#include "src/topo/mapping/nvshmem_versions.h"

#include <algorithm>

#include "src/base/text.h"

namespace shmemctl {

namespace {

/// One to four decimal digits.
std::optional<int> version_part(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || text.size() > 4 || !std::all_of(text.begin(), text.end(), is_digit))
    return std::nullopt;
  return static_cast<int>(*parse_integer(text));
}

} // namespace

std::optional<NvshmemVersion> parse_nvshmem_version(std::string_view text) {
  // Release archives carry a build number: "2.10.1-3".
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    if (!version_part(text.substr(dash + 1)))
      return std::nullopt;
    text = text.substr(0, dash);
  }
  const std::vector<std::string> parts = split(text, '.');
  if (parts.size() < 2 || parts.size() > 3)
    return std::nullopt;
  const std::optional<int> major = version_part(parts[0]);
  const std::optional<int> minor = version_part(parts[1]);
  const std::optional<int> patch = parts.size() == 3 ? version_part(parts[2]) : 0;
  if (!major || !minor || !patch)
    return std::nullopt;
  return NvshmemVersion{*major, *minor, *patch};
}

std::string to_string(const NvshmemVersion& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

const char* to_string(Generation generation) {
  switch (generation) {
  case Generation::A:
    return "A";
  case Generation::B:
    return "B";
  case Generation::C0:
    return "C0";
  case Generation::C1:
    return "C1";
  case Generation::D:
    return "D";
  case Generation::E:
    return "E";
  case Generation::F:
    return "F";
  }
  return "?";
}

/// A release that was not read (2.3, 3.6.x) belongs to the generation that the last release before
/// it belongs to.
Generation generation_of(const NvshmemVersion& version) {
  if (version < NvshmemVersion{2, 0, 0})
    return Generation::A;
  if (version < NvshmemVersion{2, 4, 0})
    return Generation::B;
  if (version < NvshmemVersion{2, 5, 0})
    return Generation::C0;
  if (version < NvshmemVersion{2, 11, 0})
    return Generation::C1;
  if (version < NvshmemVersion{3, 5, 0})
    return Generation::D;
  if (version < NvshmemVersion{3, 7, 0})
    return Generation::E;
  return Generation::F;
}

std::vector<NvshmemVersion> representative_versions() {
  return {{1, 1, 3}, {2, 2, 1}, {2, 4, 1}, {2, 10, 1}, {3, 4, 5}, {3, 6, 5}, {3, 7, 0}};
}

bool is_newer_than_known(const NvshmemVersion& version) {
  const NvshmemVersion newest = representative_versions().back();
  return std::pair(version.major, version.minor) > std::pair(newest.major, newest.minor);
}

NvshmemTransport transport_of_word(std::string_view word) {
  for (const auto& [name, transport] :
       {std::pair(std::string_view("ibrc"), NvshmemTransport::ibrc),
        std::pair(std::string_view("ibdevx"), NvshmemTransport::ibdevx),
        std::pair(std::string_view("libfabric"), NvshmemTransport::libfabric),
        std::pair(std::string_view("ucx"), NvshmemTransport::ucx)})
    if (word == name)
      return transport;
  return NvshmemTransport::none;
}

bool has_hca_prefix(const NvshmemVersion& version) {
  return version >= NvshmemVersion{3, 4, 5};
}

std::size_t hca_list_capacity(const NvshmemVersion& version) {
  return version < NvshmemVersion{3, 3, 9} ? 16 : 48;
}

std::size_t hca_pe_mapping_capacity() {
  return 32;
}

bool ignores_hca_pe_mapping(const NvshmemVersion& version) {
  return version >= NvshmemVersion{2, 9, 0} && version < NvshmemVersion{2, 11, 0};
}

bool accepts_ethernet(const NvshmemVersion& version) {
  return version >= NvshmemVersion{2, 0, 0};
}

bool uses_data_direct_path(const NvshmemVersion& version) {
  return version >= NvshmemVersion{3, 4, 5};
}

bool libfabric_uses_all(const NvshmemVersion& version) {
  return version >= NvshmemVersion{3, 6, 5};
}

bool has_transport(const NvshmemVersion& version, NvshmemTransport transport) {
  switch (transport) {
  case NvshmemTransport::none:
  case NvshmemTransport::ibrc:
    return true;
  case NvshmemTransport::ibdevx:
  case NvshmemTransport::libfabric:
    return version >= NvshmemVersion{2, 5, 0};
  case NvshmemTransport::ibgda:
    return version >= NvshmemVersion{2, 6, 0};
  case NvshmemTransport::ucx:
    return version >= NvshmemVersion{2, 1, 0};
  }
  return false;
}

std::string effective_hca_prefix(const NvshmemSettings& settings) {
  if (!has_hca_prefix(settings.version))
    return "mlx5";
  const char* by_default = settings.version < NvshmemVersion{3, 5, 19} ? "mlx5" : "^smi";
  return settings.hca_prefix.value_or(by_default);
}

bool accepts_name(const NvshmemSettings& settings, const std::string& device_name) {
  const std::string prefix = effective_hca_prefix(settings);
  if (settings.version >= NvshmemVersion{3, 5, 19} && starts_with(prefix, "^"))
    return device_name.find(prefix.substr(1)) == std::string::npos;
  return device_name.find(prefix) != std::string::npos;
}

} // namespace shmemctl
