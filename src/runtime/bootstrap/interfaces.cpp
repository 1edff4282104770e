#include "src/runtime/bootstrap/interfaces.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <mutex>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/service_thread.h"
#include "src/base/text.h"
#include "src/base/unique_handle.h"

namespace shmemctl {

namespace {

template <class T>
T as(const SocketAddress& address) {
  T typed{};
  std::memcpy(&typed, address.raw(), std::min<std::size_t>(address.length(), sizeof(typed)));
  return typed;
}

/// A parsed list of interface names in NCCL's syntax.
struct NameFilter {
  bool exclude = false, exact = false;
  std::vector<std::string> names;

  explicit NameFilter(const std::string& text) {
    std::string_view rest = text;
    exclude = starts_with(rest, "^");
    rest.remove_prefix(exclude ? 1 : 0);
    exact = starts_with(rest, "=");
    rest.remove_prefix(exact ? 1 : 0);
    for (const std::string& name : split(rest, ','))
      if (const std::string trimmed(trim(name)); !trimmed.empty())
        names.push_back(trimmed);
  }
  /// Position of the first name that fits; names.size() if none does.
  std::size_t match(const std::string& interface) const {
    const auto fits = [&](const std::string& name) {
      return exact ? interface == name : starts_with(interface, name);
    };
    return static_cast<std::size_t>(std::find_if(names.begin(), names.end(), fits) - names.begin());
  }
  bool allows(const std::string& interface) const {
    return names.empty() || (match(interface) < names.size()) != exclude;
  }
};

bool is_container_bridge(const std::string& interface) {
  for (const char* prefix : {"docker", "virbr", "br-", "cni", "veth", "lxcbr"})
    if (starts_with(interface, prefix))
      return true;
  return false;
}

/// Preference among addresses; smaller is better.
int rank_of(const InterfaceAddress& candidate) {
  if (candidate.loopback)
    return 4;
  if (!candidate.running)
    return 3;
  if (is_link_local(candidate.address))
    return 2;
  return is_container_bridge(candidate.interface) ? 1 : 0;
}

std::string describe(const std::vector<InterfaceAddress>& interfaces) {
  std::vector<std::string> parts;
  for (const InterfaceAddress& each : interfaces) {
    const std::string text = each.address.text();
    parts.push_back(each.interface + (each.up ? "" : " (down)") + " " +
                    text.substr(0, text.rfind(':')));
  }
  return parts.empty() ? "no interface has an address" : "there are " + join(parts, ", ");
}

} // namespace

std::vector<InterfaceAddress> interface_addresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0)
    throw system_error("network interfaces", "list", errno,
                       "raise the limit of open files (ulimit -n), and allow netlink sockets in "
                       "the container");
  const CHandle<ifaddrs, freeifaddrs> owner(first);
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* each = first; each; each = each->ifa_next) {
    if (!each->ifa_addr || !each->ifa_name)
      continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6)
      continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    found.push_back({each->ifa_name, (each->ifa_flags & IFF_UP) != 0,
                     (each->ifa_flags & IFF_RUNNING) != 0, (each->ifa_flags & IFF_LOOPBACK) != 0,
                     SocketAddress(each->ifa_addr, length)});
  }
  return found;
}

std::vector<SocketAddress> choose_addresses(const std::vector<InterfaceAddress>& interfaces,
                                            const InterfaceFilter& filter) {
  const NameFilter names(filter.names);
  const auto usable = [&](const InterfaceAddress& each) {
    const bool family_fits =
        filter.family.empty() ||
        each.address.family() == (filter.family == "AF_INET6" ? AF_INET6 : AF_INET);
    return each.up && family_fits && names.allows(each.interface);
  };
  std::vector<InterfaceAddress> chosen;
  std::copy_if(interfaces.begin(), interfaces.end(), std::back_inserter(chosen), usable);
  // Named interfaces come in the order of the names, whatever their kind.
  const bool by_name = !names.exclude && !names.names.empty();
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](const InterfaceAddress& left, const InterfaceAddress& right) {
                     if (by_name && names.match(left.interface) != names.match(right.interface))
                       return names.match(left.interface) < names.match(right.interface);
                     return rank_of(left) < rank_of(right);
                   });
  if (chosen.empty())
    throw Error(ExitCode::usage, "network interfaces", "",
                "none is up and matches SHMEMCTL_BOOTSTRAP_UID_SOCK_IFNAME=\"" +
                    printable(filter.names) + "\" and SHMEMCTL_BOOTSTRAP_UID_SOCK_FAMILY=\"" +
                    printable(filter.family) + "\"; " + describe(interfaces),
                "bring up an interface with an address, or name one that is up in "
                "SHMEMCTL_BOOTSTRAP_UID_SOCK_IFNAME: a comma-separated list of prefixes; a "
                "leading ^ excludes them, a leading = requires exact names");
  std::vector<SocketAddress> addresses;
  for (const InterfaceAddress& each : chosen)
    addresses.push_back(each.address);
  return addresses;
}

std::vector<SocketAddress> usable_addresses(const InterfaceFilter& filter) {
  return choose_addresses(interface_addresses(), filter);
}

bool is_loopback(const SocketAddress& address) {
  if (address.family() == AF_INET)
    return ntohl(as<sockaddr_in>(address).sin_addr.s_addr) >> 24 == 127;
  const auto ipv6 = as<sockaddr_in6>(address);
  return address.family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&ipv6.sin6_addr);
}

bool is_link_local(const SocketAddress& address) {
  if (address.family() == AF_INET)
    return ntohl(as<sockaddr_in>(address).sin_addr.s_addr) >> 16 == 0xa9fe;
  const auto ipv6 = as<sockaddr_in6>(address);
  return address.family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&ipv6.sin6_addr);
}

bool is_wildcard(const SocketAddress& address) {
  if (address.family() == AF_INET)
    return as<sockaddr_in>(address).sin_addr.s_addr == htonl(INADDR_ANY);
  const auto ipv6 = as<sockaddr_in6>(address);
  return address.family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&ipv6.sin6_addr);
}

bool same_host_address(const SocketAddress& left, const SocketAddress& right) {
  if (left.family() != right.family())
    return false;
  if (left.family() == AF_INET)
    return as<sockaddr_in>(left).sin_addr.s_addr == as<sockaddr_in>(right).sin_addr.s_addr;
  if (left.family() == AF_INET6) {
    const auto one = as<sockaddr_in6>(left), other = as<sockaddr_in6>(right);
    return IN6_ARE_ADDR_EQUAL(&one.sin6_addr, &other.sin6_addr);
  }
  return left.text() == right.text();
}

std::optional<SocketAddress> source_address(const SocketAddress& to) {
  // Connecting a datagram socket gives it a source address, and sends nothing.
  const FileDescriptor probe(socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage source{};
  socklen_t length = sizeof(source);
  if (!probe || connect(probe.get(), to.raw(), to.length()) != 0 ||
      getsockname(probe.get(), reinterpret_cast<sockaddr*>(&source), &length) != 0)
    return std::nullopt;
  return SocketAddress(reinterpret_cast<const sockaddr*>(&source), length).with_port(0);
}

SocketAddress parse_foreign_address(const std::string& text) {
  const std::size_t percent = text.find('%'), end = text.find(']');
  const bool scoped = starts_with(text, "[") && percent < end && end != std::string::npos;
  if (scoped && if_nametoindex(text.substr(percent + 1, end - percent - 1).c_str()) == 0)
    return SocketAddress::parse(text.substr(0, percent) + text.substr(end));
  return SocketAddress::parse(text);
}

std::vector<SocketAddress> parse_foreign_addresses(const std::vector<std::string>& texts) {
  std::vector<SocketAddress> addresses;
  for (const std::string& text : texts)
    try {
      addresses.push_back(parse_foreign_address(text));
    } catch (const Error& error) {
      log(LogLevel::info, "bootstrap", error.message());
    }
  return addresses;
}

std::vector<SocketAddress> without_local_only(std::vector<SocketAddress> addresses) {
  for (const auto is_local : {is_loopback, is_link_local})
    if (!std::all_of(addresses.begin(), addresses.end(), is_local))
      addresses.erase(std::remove_if(addresses.begin(), addresses.end(), is_local),
                      addresses.end());
  return addresses;
}

std::vector<SocketAddress> reachable_forms(const SocketAddress& address) {
  if (address.family() != AF_INET6 || !is_link_local(address))
    return {address};
  auto scoped = as<sockaddr_in6>(address);
  std::vector<SocketAddress> forms;
  if (scoped.sin6_scope_id != 0)
    forms.push_back(address);
  const std::uint32_t own_scope = scoped.sin6_scope_id;
  for (const InterfaceAddress& each : interface_addresses()) {
    if (!each.up || each.address.family() != AF_INET6 || !is_link_local(each.address))
      continue;
    scoped.sin6_scope_id = if_nametoindex(each.interface.c_str());
    if (scoped.sin6_scope_id != own_scope)
      forms.emplace_back(reinterpret_cast<const sockaddr*>(&scoped), sizeof(scoped));
  }
  return forms;
}

namespace {

using AddressList = CHandle<addrinfo, freeaddrinfo>;
constexpr std::chrono::milliseconds pause_between_questions{200};

/// A call of getaddrinfo(3). It cannot be interrupted, so it runs on a thread, which outlives a
/// wait that times out.
struct Question {
  std::mutex mutex;
  std::condition_variable answered;
  bool done = false;
  int result = 0;
  AddressList list;
};

std::shared_ptr<Question> ask(const std::string& host, int family) {
  auto question = std::make_shared<Question>();
  start_service_thread("resolve", [question, host, family] {
    addrinfo hints{};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* first = nullptr;
    const int result = getaddrinfo(host.c_str(), nullptr, &hints, &first);
    const std::lock_guard lock(question->mutex);
    question->result = result;
    question->list.reset(result == 0 ? first : nullptr);
    question->done = true;
    question->answered.notify_one();
  }).detach();
  return question;
}

[[noreturn]] void late(const std::string& host) {
  throw Error(ExitCode::deadline, "host name " + printable(host), "resolve",
              "timed out without a reply", "check the name server, or use an address");
}

} // namespace

std::vector<SocketAddress> resolve(const std::string& host, int port, int family,
                                   const Deadline& deadline) {
  for (;;) {
    const std::shared_ptr<Question> question = ask(host, family);
    std::unique_lock lock(question->mutex);
    if (!question->answered.wait_until(lock, deadline.at(), [&] { return question->done; }))
      late(host);
    if (question->result == 0) {
      std::vector<SocketAddress> addresses;
      for (const addrinfo* each = question->list.get(); each; each = each->ai_next)
        addresses.push_back(SocketAddress(each->ai_addr, each->ai_addrlen).with_port(port));
      return addresses;
    }
    if (question->result != EAI_AGAIN)
      throw Error(ExitCode::unavailable, "host name " + printable(host), "resolve",
                  gai_strerror(question->result), "check the name, or use an address");
    question->answered.wait_for(lock, pause_between_questions, [] { return false; });
    if (deadline.passed())
      late(host);
  }
}

} // namespace shmemctl
