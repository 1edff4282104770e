// Where a rendezvous listens.
#include <algorithm>

#include "src/base/error.h"
#include "src/bootstrap/interfaces.h"
#include "src/bootstrap/rendezvous.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_listeners = 16;
constexpr int attempts_for_one_port = 10;

/// Loopback leads nowhere from another host: it stays only if there is nothing else.
std::vector<SocketAddress> addresses_to_offer(const InterfaceFilter& filter) {
  std::vector<SocketAddress> addresses = usable_addresses(filter);
  const auto end = std::remove_if(addresses.begin(), addresses.end(), is_loopback);
  if (end != addresses.begin())
    addresses.erase(end, addresses.end());
  addresses.resize(std::min(addresses.size(), max_listeners));
  return addresses;
}

/// Listeners with the first one's port. Empty if that is taken elsewhere, unless `some_will_do`.
std::vector<Listener> try_one_port(const std::vector<SocketAddress>& addresses, bool some_will_do) {
  std::vector<Listener> listeners;
  for (const SocketAddress& address : addresses) {
    try {
      listeners.emplace_back(listeners.empty() ? address
                                               : address.with_port(listeners[0].address().port()));
    } catch (const Error&) {
      if (!some_will_do)
        return {};
    }
  }
  return listeners;
}

std::vector<Listener> listen_with_one_port(const std::vector<SocketAddress>& addresses) {
  for (int attempt = 1; attempt <= attempts_for_one_port; ++attempt) {
    std::vector<Listener> listeners = try_one_port(addresses, attempt == attempts_for_one_port);
    if (!listeners.empty())
      return listeners;
  }
  throw Error(ExitCode::unavailable, "rendezvous", "start",
              "no address of this host accepts a listener", "check the limit of open files");
}

std::unique_ptr<Rendezvous> start_on(std::vector<Listener> listeners, const Secret& secret,
                                     double timeout_s) {
  UniqueId id;
  id.secret = secret;
  for (const Listener& listener : listeners)
    id.addresses.push_back(listener.address());
  return std::make_unique<RendezvousThread>(std::move(id), std::move(listeners), timeout_s);
}

} // namespace

std::unique_ptr<Rendezvous> Rendezvous::start(const InterfaceFilter& filter, double timeout_s,
                                              const Secret& secret) {
  return start_on(listen_with_one_port(addresses_to_offer(filter)), secret, timeout_s);
}

std::unique_ptr<Rendezvous> Rendezvous::start_local(double timeout_s, const Secret& secret) {
  std::vector<Listener> listeners;
  listeners.emplace_back(SocketAddress::abstract_unix(random_unix_name()));
  return start_on(std::move(listeners), secret, timeout_s);
}

std::unique_ptr<Rendezvous> Rendezvous::start_at(const SocketAddress& address, const Secret& secret,
                                                 double timeout_s) {
  std::vector<Listener> listeners;
  listeners.emplace_back(address);
  return start_on(std::move(listeners), secret, timeout_s);
}

} // namespace shmemctl
