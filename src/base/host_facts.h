// Facts that should be the same on all hosts of one type.
#pragma once

#include <map>
#include <string>

namespace shmemctl {

/// The facts of one host by name: "kernel" -> "6.8.0-45-generic", "nic.mlx5_0.firmware" ->
/// "28.39.1002". Names have parts, separated by dots. A device is a fact itself ("nic.mlx5_0" ->
/// "15b3:1021") and precedes the facts of its parts. Properties that differ between hosts of one
/// type anyway (names, addresses, GUIDs, serial numbers, times, free memory) are not facts, and
/// unknown facts are left out.
struct HostFacts {
  std::string host; ///< name of the host; "" if it is unknown
  std::map<std::string, std::string> facts;

  bool operator==(const HostFacts&) const = default;
};

} // namespace shmemctl
