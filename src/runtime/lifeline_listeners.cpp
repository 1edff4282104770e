#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/text.h"
#include "src/runtime/identity.h"
#include "src/runtime/lifeline_addresses.h"
#include "src/runtime/lifeline_start.h"

namespace shmemctl::lifeline {

namespace {

constexpr std::size_t max_tcp_listeners = 5;

/// What each PE tells all others.
struct Offer {
  std::uint64_t machine_id, network_namespace;
  std::array<char, 496> addresses; ///< as text, separated by blanks, filled up with zeros
};

SocketAddress new_unix_address() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
    number = static_cast<std::uint64_t>(Deadline::Clock::now().time_since_epoch().count());
  return SocketAddress::abstract_unix(
      fmt::format("shmemctl-lifeline-{}-{:016x}", ::getpid(), number));
}

std::string address_text(const std::vector<Listener>& listeners) {
  std::vector<std::string> texts;
  std::size_t length = 0;
  for (const Listener& listener : listeners) {
    texts.push_back(listener.address().text());
    length += texts.back().size() + 1;
    if (length > sizeof(Offer::addresses))
      texts.pop_back();
  }
  return join(texts, " ");
}

std::vector<std::string> offered_by(const Offer& offer) {
  return split_blanks(std::string(offer.addresses.data(),
                                  ::strnlen(offer.addresses.data(), offer.addresses.size())));
}

bool is_unix(const SocketAddress& address) {
  return address.family() == AF_UNIX;
}

bool same_network(const Offer& left, const Offer& right) {
  return left.machine_id == right.machine_id && left.network_namespace == right.network_namespace &&
         left.network_namespace != 0;
}

/// An abstract Unix name is seen by all processes of one network namespace of one kernel.
bool all_over_unix(const std::vector<Offer>& offers) {
  return std::all_of(offers.begin(), offers.end(), [&](const Offer& offer) {
    const std::vector<SocketAddress> addresses = parse_foreign_addresses(offered_by(offer));
    return same_network(offer, offers[0]) &&
           std::any_of(addresses.begin(), addresses.end(), is_unix);
  });
}

/// Decided from what all have said alone, so that all PEs decide alike.
bool can_be_reached(const Offer& offer, const std::vector<Offer>& offers) {
  const bool has_others = std::any_of(offers.begin(), offers.end(), [&](const Offer& other) {
    return !same_network(offer, other);
  });
  if (has_others)
    return reachable_from_elsewhere(offered_by(offer));
  const std::vector<SocketAddress> addresses = parse_foreign_addresses(offered_by(offer));
  return std::any_of(addresses.begin(), addresses.end(),
                     [](const SocketAddress& address) { return !is_unix(address); });
}

/// What this PE tries for another one.
std::vector<SocketAddress> addresses_for(const Offer& mine, const Offer& other, bool over_unix) {
  std::vector<std::string> offered = offered_by(other);
  offered.erase(std::remove_if(offered.begin(), offered.end(),
                               [&](const std::string& text) {
                                 return starts_with(text, "unix:") != over_unix;
                               }),
                offered.end());
  return addresses_to_try(offered, same_network(mine, other));
}

} // namespace

Listeners::Listeners(const std::vector<SocketAddress>& tcp_addresses) {
  std::vector<SocketAddress> wanted = {new_unix_address()};
  for (const SocketAddress& address : without_local_only(tcp_addresses))
    if (!is_unix(address) && wanted.size() <= max_tcp_listeners)
      wanted.push_back(address.with_port(0));
  for (const SocketAddress& address : wanted)
    try {
      listeners_.emplace_back(address);
    } catch (const Error& error) {
      log(LogLevel::info, "lifeline", error.message());
    }
}

AddressBook Listeners::exchange(Bootstrap& bootstrap, const std::vector<std::string>& host_names,
                                const Settings& settings, const Deadline& deadline) {
  const HostIdentity identity = read_machine_identity(Sysroot());
  Offer mine{identity.machine_id, identity.network_namespace, {}};
  const std::string text = address_text(listeners_);
  std::copy(text.begin(), text.end(), mine.addresses.begin());
  const std::vector<Offer> offers = allgather_value(bootstrap, mine, deadline);

  const bool over_unix = !settings.always_tcp && all_over_unix(offers);
  AddressBook addresses;
  for (std::size_t pe = 0; pe < offers.size(); ++pe) {
    if (!over_unix && !can_be_reached(offers[pe], offers))
      throw Error(ExitCode::unavailable, "lifeline", "start",
                  "PE " + std::to_string(pe) +
                      (pe < host_names.size() ? " (host " + host_names[pe] + ")" : "") +
                      " has no network address, and not all PEs are on one machine",
                  "bring up an interface on that host, or name one in BOOTSTRAP_UID_SOCK_IFNAME");
    addresses.push_back(
        addresses_for(offers[static_cast<std::size_t>(bootstrap.rank())], offers[pe], over_unix));
  }
  listeners_.erase(std::remove_if(listeners_.begin(), listeners_.end(),
                                  [&](const Listener& listener) {
                                    return is_unix(listener.address()) != over_unix;
                                  }),
                   listeners_.end());
  return addresses;
}

} // namespace shmemctl::lifeline
