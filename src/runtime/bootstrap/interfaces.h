// Network interfaces of this host, the choice among them, and name resolution.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/socket.h"
#include "src/runtime/bootstrap/uid_bootstrap.h"

namespace shmemctl {

/// One address of one interface.
struct InterfaceAddress {
  std::string interface;
  bool up = true, running = true, loopback = false;
  SocketAddress address; ///< port 0
};
/// What getifaddrs(3) knows, IPv4 and IPv6 only. Throws Error.
std::vector<InterfaceAddress> interface_addresses();

/// The choice that usable_addresses() makes, as a function of its input.
std::vector<SocketAddress> choose_addresses(const std::vector<InterfaceAddress>& interfaces,
                                            const InterfaceFilter& filter);

bool is_loopback(const SocketAddress& address);
bool is_link_local(const SocketAddress& address);
/// 0.0.0.0 or ::
bool is_wildcard(const SocketAddress& address);
/// True if the two differ in nothing but the port and the scope.
bool same_host_address(const SocketAddress& left, const SocketAddress& right);

/// An address that another host wrote: the scope of an IPv6 link-local one is the name of an
/// interface there, and is left out if this host has no such interface. Throws Error (usage).
SocketAddress parse_foreign_address(const std::string& text);
/// Those of `texts` that are addresses, in order. Malformed ones are skipped: the others may still
/// work.
std::vector<SocketAddress> parse_foreign_addresses(const std::vector<std::string>& texts);
/// What is worth telling other hosts, in the same order: no loopback address if there is another
/// one, and no link-local one if there is one that routers know.
std::vector<SocketAddress> without_local_only(std::vector<SocketAddress> addresses);
/// The addresses to try in order to reach `address`, which another host gave. For IPv6 link-local:
/// the address with its own scope id, if it has one, then with that of each other interface of
/// this host that is up and has a link-local address. Otherwise `address` alone.
std::vector<SocketAddress> reachable_forms(const SocketAddress& address);
/// The address of this host from which `to` is reached (port 0); nothing if there is no route.
std::optional<SocketAddress> source_address(const SocketAddress& to);

/// A name for an abstract Unix socket that nothing else has: "shmemctl-<16 hex digits>".
std::string random_unix_name();

/// The addresses of a host name. A name server that is out of order is asked again until the
/// deadline. Throws Error (unavailable: no such host; deadline).
/// @param family AF_UNSPEC, AF_INET or AF_INET6
std::vector<SocketAddress> resolve(const std::string& host, int port, int family,
                                   const Deadline& deadline);

} // namespace shmemctl
