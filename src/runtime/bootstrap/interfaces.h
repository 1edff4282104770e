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
/// The IPv4 and IPv6 addresses that getifaddrs(3) returns. Throws Error.
std::vector<InterfaceAddress> interface_addresses();

/// The choice that usable_addresses() makes, as a function of its input.
std::vector<SocketAddress> choose_addresses(const std::vector<InterfaceAddress>& interfaces,
                                            const InterfaceFilter& filter);

bool is_loopback(const SocketAddress& address);
bool is_link_local(const SocketAddress& address);
/// 0.0.0.0 or ::
bool is_wildcard(const SocketAddress& address);
/// True if the addresses are equal except for port and scope.
bool same_host_address(const SocketAddress& left, const SocketAddress& right);

/// Parses an address that another host wrote. The scope of an IPv6 link-local address is the name
/// of an interface of that host, and is left out if this host has no interface of that name. Throws
/// Error (usage).
SocketAddress parse_foreign_address(const std::string& text);
/// The addresses in `texts`, in order. Malformed ones are skipped: the others may still work.
std::vector<SocketAddress> parse_foreign_addresses(const std::vector<std::string>& texts);
/// The addresses that are useful to other hosts, in the same order: without loopback addresses if
/// there are others, and then without link-local addresses if there are others.
std::vector<SocketAddress> without_local_only(std::vector<SocketAddress> addresses);
/// The addresses to try in order to reach `address`, which another host gave. If it is an IPv6
/// link-local address: the address with its own scope id, if it has one, then with that of each
/// other interface of this host that is up and has a link-local address. Otherwise only `address`.
std::vector<SocketAddress> reachable_forms(const SocketAddress& address);
/// The address of this host from which `to` is reached (port 0); nothing if there is no route.
std::optional<SocketAddress> source_address(const SocketAddress& to);

/// A random name for an abstract Unix socket: "shmemctl-<16 hex digits>".
std::string random_unix_name();

/// The addresses of a host name. If the name server fails temporarily, it is asked again until the
/// deadline. Throws Error (unavailable: no such host; deadline).
/// @param family AF_UNSPEC, AF_INET or AF_INET6
std::vector<SocketAddress> resolve(const std::string& host, int port, int family,
                                   const Deadline& deadline);

} // namespace shmemctl
