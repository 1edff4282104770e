#include <algorithm>
#include <arpa/inet.h>
#include <cstddef>
#include <cstring>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "src/base/error.h"
#include "src/base/socket.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_unix_name_bytes = 100;
constexpr std::size_t max_address_bytes = 160;
constexpr const char* unix_prefix = "unix:";

[[noreturn]] void refuse(const std::string& text, const std::string& problem) {
  throw Error(ExitCode::usage, "socket address \"" + printable(text, max_address_bytes) + "\"", "",
              problem, "write it as 10.0.0.1:4711, [fe80::1%eth0]:4711 or unix:NAME");
}

int parse_port(const std::string& text, std::string_view digits) {
  const std::optional<long long> port = parse_integer(digits);
  const bool only_digits = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
  if (!port || !only_digits || *port > 65535)
    refuse(text, "the port is not a number from 0 to 65535");
  return static_cast<int>(*port);
}

/// Number of a scope: an interface of this host, or its index.
std::uint32_t parse_scope(const std::string& text, const std::string& scope) {
  if (const unsigned index = if_nametoindex(scope.c_str()))
    return index;
  const std::optional<long long> number = parse_integer(scope);
  if (!number || *number < 1 || *number > 0x7fffffff)
    refuse(text, "this host has no interface \"" + printable(scope, 32) + "\"");
  return static_cast<std::uint32_t>(*number);
}

SocketAddress parse_ipv6(const std::string& text) {
  const std::size_t end = text.find(']');
  if (end == std::string::npos || end + 1 >= text.size() || text[end + 1] != ':')
    refuse(text, "expected an IPv6 address, ] and :PORT after [");
  std::string host = text.substr(1, end - 1);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  if (const std::size_t percent = host.find('%'); percent != std::string::npos) {
    address.sin6_scope_id = parse_scope(text, host.substr(percent + 1));
    host.resize(percent);
  }
  if (inet_pton(AF_INET6, host.c_str(), &address.sin6_addr) != 1)
    refuse(text, "not an IPv6 address between [ and ]");
  address.sin6_port =
      htons(static_cast<std::uint16_t>(parse_port(text, std::string_view(text).substr(end + 2))));
  return {reinterpret_cast<const sockaddr*>(&address), sizeof(address)};
}

SocketAddress parse_ipv4(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos)
    refuse(text, "no :PORT given");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1)
    refuse(text, "not an IPv4 address before the colon");
  address.sin_port =
      htons(static_cast<std::uint16_t>(parse_port(text, std::string_view(text).substr(colon + 1))));
  return {reinterpret_cast<const sockaddr*>(&address), sizeof(address)};
}

std::string scope_text(std::uint32_t scope) {
  char name[IF_NAMESIZE] = {};
  return if_indextoname(scope, name) ? std::string(name) : std::to_string(scope);
}

} // namespace

SocketAddress::SocketAddress(const sockaddr* address, socklen_t length)
    : length_(std::min<socklen_t>(length, sizeof(storage_))) {
  std::memcpy(&storage_, address, length_);
}

SocketAddress SocketAddress::parse(const std::string& text) {
  if (text.size() > max_address_bytes || text.find('\0') != std::string::npos)
    refuse(text, "too long, or with a NUL byte");
  if (starts_with(text, unix_prefix))
    return abstract_unix(text.substr(std::strlen(unix_prefix)));
  return starts_with(text, "[") ? parse_ipv6(text) : parse_ipv4(text);
}

SocketAddress SocketAddress::abstract_unix(const std::string& name) {
  const bool graphical =
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~' && c != ','; });
  if (name.empty() || name.size() > max_unix_name_bytes || !graphical)
    refuse(unix_prefix + name,
           "a Unix name must have 1 to 100 printable ASCII characters, without blanks and commas");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return {reinterpret_cast<const sockaddr*>(&address),
          static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

std::string SocketAddress::text() const {
  char buffer[INET6_ADDRSTRLEN] = {};
  if (family() == AF_INET) {
    sockaddr_in address{};
    std::memcpy(&address, &storage_, sizeof(address));
    inet_ntop(AF_INET, &address.sin_addr, buffer, sizeof(buffer));
    return std::string(buffer) + ":" + std::to_string(port());
  }
  if (family() == AF_INET6) {
    sockaddr_in6 address{};
    std::memcpy(&address, &storage_, sizeof(address));
    inet_ntop(AF_INET6, &address.sin6_addr, buffer, sizeof(buffer));
    const std::string scope =
        address.sin6_scope_id != 0 ? "%" + scope_text(address.sin6_scope_id) : "";
    return "[" + std::string(buffer) + scope + "]:" + std::to_string(port());
  }
  constexpr std::size_t name_at = offsetof(sockaddr_un, sun_path) + 1;
  if (family() == AF_UNIX && length_ > name_at)
    return unix_prefix +
           std::string(reinterpret_cast<const char*>(&storage_) + name_at, length_ - name_at);
  return "";
}

SocketAddress SocketAddress::with_port(int port) const {
  SocketAddress other = *this;
  const auto network_port = htons(static_cast<std::uint16_t>(port));
  auto* bytes = reinterpret_cast<unsigned char*>(&other.storage_);
  if (family() == AF_INET)
    std::memcpy(bytes + offsetof(sockaddr_in, sin_port), &network_port, sizeof(network_port));
  if (family() == AF_INET6)
    std::memcpy(bytes + offsetof(sockaddr_in6, sin6_port), &network_port, sizeof(network_port));
  return other;
}

int SocketAddress::port() const {
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  if (family() != AF_INET && family() != AF_INET6)
    return 0;
  std::uint16_t network_port = 0;
  std::memcpy(&network_port,
              reinterpret_cast<const unsigned char*>(&storage_) + offsetof(sockaddr_in, sin_port),
              sizeof(network_port));
  return ntohs(network_port);
}

} // namespace shmemctl
