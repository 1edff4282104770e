// Which ports of two PEs connect.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shmemctl::rc {

/// A port here and the port there that it connects to, by their positions in the PEs' lists.
struct PortPair {
  std::size_t port = 0, peer_port = 0;
};

/// As many paths as the PE with more ports has ports, the other PE's ports assigned round-robin, so
/// that the best ports of both are paired. Both ends compute the same pairs; none if a PE has no
/// ports.
std::vector<PortPair> pair_ports(std::size_t ports, std::size_t peer_ports);

/// "rxe0:1"; printable whatever a peer calls its device.
std::string port_name(const std::string& device, int port);

} // namespace shmemctl::rc
