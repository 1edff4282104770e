// Which addresses of another PE's lifeline are worth trying from here.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/base/socket.h"
#include "src/bootstrap/interfaces.h"

namespace shmemctl::lifeline {

/// The forms of an address of another host that this host can connect to.
using ReachableForms = std::function<std::vector<SocketAddress>(const SocketAddress&)>;

/// What to try of the addresses that a PE offers, in its order; texts that are no address are left
/// out. To another machine or network namespace no loopback address leads; a link-local one is
/// tried only where there is no other, through each interface of this host (its scope is the name
/// of an interface of the other host).
/// @param same_network that PE is in this network namespace of this machine
std::vector<SocketAddress> addresses_to_try(const std::vector<std::string>& offered,
                                            bool same_network,
                                            const ReachableForms& forms = reachable_forms);

/// Whether any of the addresses may be reached from another machine or network namespace: the same
/// answer on every PE, whatever its interfaces are.
bool reachable_from_elsewhere(const std::vector<std::string>& offered);

} // namespace shmemctl::lifeline
