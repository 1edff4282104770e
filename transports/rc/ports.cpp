#include "transports/rc/ports.h"

#include <algorithm>

#include "src/base/error.h"

namespace shmemctl::rc {

std::vector<PortPair> pair_ports(std::size_t ports, std::size_t peer_ports) {
  std::vector<PortPair> pairs;
  for (std::size_t i = 0; ports > 0 && peer_ports > 0 && i < std::max(ports, peer_ports); ++i)
    pairs.push_back({i % ports, i % peer_ports});
  return pairs;
}

std::string port_name(const std::string& device, int port) {
  return printable(device) + ":" + std::to_string(port);
}

} // namespace shmemctl::rc
