// Names of the ports of "hotspots" and "nic_counters" for people.
#pragma once

#include <set>
#include <string>
#include <utility>

#include <nlohmann/json_fwd.hpp>

namespace shmemctl {

/// "mlx5_0:1"; a network interface has no ports, though it is counted as one: "eth0".
/// @param port of "hotspots.ports"; arbitrary content is safe
std::string port_name(const nlohmann::json& port);

/// Names of ports for objects and counters that name a port without saying whether it is an
/// interface.
class PortNames {
public:
  /// @param hotspots a report's; arbitrary content is safe
  void learn(const nlohmann::json& hotspots);
  std::string name(const std::string& host, const std::string& device,
                   const std::string& port) const;

private:
  std::set<std::pair<std::string, std::string>> interfaces_; ///< host, device
};

} // namespace shmemctl
