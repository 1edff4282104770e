// What should be the same on all hosts of one type.
#pragma once

#include <map>
#include <string>

namespace shmemctl {

/// The facts of one host by name: "kernel" -> "6.8.0-45-generic", "nic.mlx5_0.firmware" ->
/// "28.39.1002". Names have parts, separated by dots, and a device is a fact of its own
/// ("nic.mlx5_0" -> "15b3:1021"), in front of those of its parts. What differs from host to host of
/// one type anyway (names, addresses, GUIDs, serial numbers, times, free memory) is none, and what
/// is unknown is not there.
struct HostFacts {
  std::string host; ///< name of the host; "" if it is unknown
  std::map<std::string, std::string> facts;

  bool operator==(const HostFacts&) const = default;
};

} // namespace shmemctl
