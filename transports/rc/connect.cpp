#include "transports/rc/connect.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/error.h"

namespace shmemctl::rc {

void accept_hello(Job& job, int pe, const std::string& host, int qp_sets, const QpSetCount& local) {
  job.peer_hosts[static_cast<std::size_t>(pe)] = printable(host, max_text_bytes);
  if (qp_sets != local.here)
    throw Error(ExitCode::usage, job.name_of(pe), "connect",
                fmt::format("it creates {} QPs per peer and NIC, this PE {}", qp_sets, local.here),
                fmt::format("set {} on all PEs", local.options), job.where());
}

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
