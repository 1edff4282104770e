#include "src/runtime/lifeline_addresses.h"

#include <algorithm>

namespace shmemctl::lifeline {

std::vector<SocketAddress> addresses_to_try(const std::vector<std::string>& offered,
                                            bool same_network, const ReachableForms& forms) {
  std::vector<SocketAddress> known = parse_foreign_addresses(offered);
  if (!same_network)
    known.erase(std::remove_if(known.begin(), known.end(), is_loopback), known.end());
  std::vector<SocketAddress> tried;
  for (const SocketAddress& address : without_local_only(std::move(known)))
    for (const SocketAddress& form : forms(address))
      tried.push_back(form);
  return tried;
}

bool reachable_from_elsewhere(const std::vector<std::string>& offered) {
  const std::vector<SocketAddress> known = parse_foreign_addresses(offered);
  return std::any_of(known.begin(), known.end(), [](const SocketAddress& address) {
    return address.family() != AF_UNIX && !is_loopback(address);
  });
}

} // namespace shmemctl::lifeline
