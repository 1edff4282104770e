#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/text.h"
#include "src/runtime/identity.h"
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

std::vector<SocketAddress> parse_addresses(const Offer& offer) {
  const std::string text(offer.addresses.data(),
                         ::strnlen(offer.addresses.data(), offer.addresses.size()));
  std::vector<SocketAddress> addresses;
  for (const std::string& part : split_blanks(text))
    addresses.push_back(SocketAddress::parse(part));
  return addresses;
}

bool is_unix(const SocketAddress& address) {
  return address.family() == AF_UNIX;
}

bool has_unix(const std::vector<SocketAddress>& addresses) {
  return std::any_of(addresses.begin(), addresses.end(), is_unix);
}

/// An abstract Unix name is seen by all processes of one network namespace of one kernel.
bool all_on_one_machine(const std::vector<Offer>& offers, const AddressBook& addresses) {
  return std::all_of(offers.begin(), offers.end(),
                     [&](const Offer& offer) {
                       return offer.machine_id == offers[0].machine_id &&
                              offer.network_namespace == offers[0].network_namespace &&
                              offer.network_namespace != 0;
                     }) &&
         std::all_of(addresses.begin(), addresses.end(), has_unix);
}

} // namespace

Listeners::Listeners(const std::vector<SocketAddress>& tcp_addresses) {
  std::vector<SocketAddress> wanted = {new_unix_address()};
  for (std::size_t i = 0; i < std::min(tcp_addresses.size(), max_tcp_listeners); ++i)
    if (!is_unix(tcp_addresses[i]))
      wanted.push_back(tcp_addresses[i].with_port(0));
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

  AddressBook addresses;
  for (const Offer& offer : offers)
    addresses.push_back(parse_addresses(offer));
  const bool over_unix = !settings.always_tcp && all_on_one_machine(offers, addresses);
  for (std::size_t pe = 0; pe < addresses.size(); ++pe) {
    std::vector<SocketAddress>& known = addresses[pe];
    known.erase(
        std::remove_if(known.begin(), known.end(),
                       [&](const SocketAddress& address) { return is_unix(address) != over_unix; }),
        known.end());
    if (known.empty())
      throw Error(ExitCode::unavailable, "the lifeline", "start",
                  "PE " + std::to_string(pe) +
                      (pe < host_names.size() ? " (host " + host_names[pe] + ")" : "") +
                      " has no network address, and not all PEs are on one machine",
                  "bring up an interface on that host, or name one in BOOTSTRAP_UID_SOCK_IFNAME");
  }
  listeners_.erase(std::remove_if(listeners_.begin(), listeners_.end(),
                                  [&](const Listener& listener) {
                                    return is_unix(listener.address()) != over_unix;
                                  }),
                   listeners_.end());
  return addresses;
}

} // namespace shmemctl::lifeline
