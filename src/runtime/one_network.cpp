#include <algorithm>
#include <numeric>

#include "src/runtime/identity.h"

namespace shmemctl {

bool one_network(const Placement& placement, const std::vector<int>& pes) {
  const auto host = [&](int pe) -> const PeHost& {
    return placement.hosts[static_cast<std::size_t>(pe)];
  };
  return std::all_of(pes.begin(), pes.end(), [&](int pe) {
    return host(pe).machine_id == host(pes[0]).machine_id &&
           host(pe).network_namespace == host(pes[0]).network_namespace;
  });
}

bool one_network(const Placement& placement) {
  std::vector<int> all(placement.hosts.size());
  std::iota(all.begin(), all.end(), 0);
  return one_network(placement, all);
}

} // namespace shmemctl
