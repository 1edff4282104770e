// What all parts of ibdevx or ibgda know of the job and of this PE's ports.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/job_health.h"
#include "transports/mlx5/hca.h"

namespace shmemctl::mlx5 {

class EmulatedHca;

/// A port of this PE.
struct Port {
  std::unique_ptr<Hca> hca;
  EmulatedHca* soft = nullptr; ///< the same, if it is software

  const HcaInfo& info() const { return hca->info(); }
};

struct JobView {
  int pe = 0;
  int n_pes = 1;
  std::string host;
  JobHealth* health = nullptr;
  double timeout_s = 60;
  std::vector<Port> ports;             ///< best first
  std::vector<std::string> peer_hosts; ///< by PE

  Where where() const { return {host, pe, {}, std::nullopt}; }
  /// This PE and a port, for messages.
  Where where(const Port& port) const { return {host, pe, port.info().device, port.info().port}; }
  /// "PE 3 on node2"
  std::string name_of(int peer) const {
    const auto slot = static_cast<std::size_t>(peer);
    const bool known = slot < peer_hosts.size() && !peer_hosts[slot].empty();
    return "PE " + std::to_string(peer) + (known ? " on " + peer_hosts[slot] : "");
  }
};

} // namespace shmemctl::mlx5
