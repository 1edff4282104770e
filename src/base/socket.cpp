// TCP and Unix sockets with deadlines.
#include "src/base/socket.h"

#include "src/base/deadline.h"
#include "src/base/error.h"
#include "src/base/open_files.h"
#include "src/base/text.h"
#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/un.h>

namespace shmemctl {

namespace {

constexpr int check_interval_ms = 50;
constexpr int listen_backlog = 4096;
constexpr double first_pause_s = 0.001, longest_pause_s = 0.2;

void call(const WaitCheck& check) {
  if (check)
    check();
}

/// Returns false once the deadline has passed. An interrupted or spurious wait is retried.
bool wait_ready(int descriptor, short events, const Deadline& deadline, const WaitCheck& check) {
  for (;;) {
    pollfd entry{descriptor, events, 0};
    const int ready = poll(&entry, 1, deadline.poll_ms(check_interval_ms));
    if (ready > 0)
      return true;
    call(check);
    if (ready == 0 && deadline.passed())
      return false;
  }
}

void pause(const Deadline& deadline, double span_s, const WaitCheck& check) {
  const Deadline end = deadline.at_most(std::chrono::duration<double>(span_s));
  do {
    poll(nullptr, 0, end.poll_ms(check_interval_ms));
    call(check);
  } while (!end.passed());
}

std::string fix_for(int error_number) {
  if (error_number == EMFILE || error_number == ENFILE)
    return "raise the limit of open files (ulimit -n)";
  return "check the address, the interfaces and the firewall between the hosts";
}

/// Calls `make` to create a descriptor. If too many files are open, raises the limit and calls it
/// once more.
template <class Make>
FileDescriptor make_descriptor(const Make& make) {
  FileDescriptor made(make());
  // Another thread may have raised the limit meanwhile: then the second attempt succeeds as well.
  if (!made && errno == EMFILE) {
    raise_open_file_limit();
    made = FileDescriptor(make());
  }
  return made;
}

FileDescriptor make_socket(const SocketAddress& address) {
  FileDescriptor made = make_descriptor([&address] {
    return socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  });
  if (!made)
    throw system_error("socket for " + address.text(), "create", errno, fix_for(errno));
  return made;
}

void set_no_delay(int descriptor, int family) {
  const int on = 1;
  if (family != AF_UNIX)
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/// A client that retries a port of the ephemeral range may be given that port by chance and connect
/// to itself (TCP's simultaneous open).
bool connected_to_itself(int descriptor, int family) {
  if (family == AF_UNIX)
    return false;
  sockaddr_storage local{}, other{};
  socklen_t local_length = sizeof(local), other_length = sizeof(other);
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &local_length) != 0 ||
      getpeername(descriptor, reinterpret_cast<sockaddr*>(&other), &other_length) != 0)
    return false;
  return local_length == other_length && std::memcmp(&local, &other, local_length) == 0;
}

/// The result of a connection that was started: 0, or an errno.
int result_of_connect(int descriptor) {
  int problem = 0;
  socklen_t length = sizeof(problem);
  if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &problem, &length) != 0)
    return errno;
  sockaddr_storage other{};
  length = sizeof(other);
  if (problem == 0 && getpeername(descriptor, reinterpret_cast<sockaddr*>(&other), &length) != 0)
    return EINPROGRESS;
  return problem == 0 && connected_to_itself(descriptor, other.ss_family) ? ECONNREFUSED : problem;
}

/// Makes one attempt. Returns 0 or its errno (ETIME if the deadline passed).
int try_connect(int descriptor, const SocketAddress& address, const Deadline& deadline,
                const WaitCheck& check) {
  if (::connect(descriptor, address.raw(), address.length()) == 0)
    return 0;
  if (errno != EINPROGRESS)
    return errno;
  if (!wait_ready(descriptor, POLLOUT, deadline, check))
    return ETIME;
  return result_of_connect(descriptor);
}

[[noreturn]] void throw_lost(const std::string& peer, const std::string& attempted,
                             const std::string& problem) {
  throw Error(ExitCode::unavailable, peer, attempted, problem,
              "check the output of " + peer +
                  ", which may have exited, and the network to its host");
}

[[noreturn]] void throw_late(const std::string& peer, const std::string& attempted) {
  throw Error(ExitCode::deadline, peer, attempted, "timed out",
              "check the output of " + peer + ", or " + raise_timeout());
}

bool would_wait(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

std::string name_of_client(const sockaddr_storage& address, socklen_t length) {
  const std::string text =
      SocketAddress(reinterpret_cast<const sockaddr*>(&address), length).text();
  return text.empty() ? "a process of this host" : text;
}

} // namespace

Socket::Socket(FileDescriptor descriptor, std::string peer)
    : descriptor_(std::move(descriptor)), peer_(std::move(peer)) {}

bool connect_may_be_retried(int error_number) {
  return error_number == ECONNREFUSED || error_number == EAGAIN || error_number == ECONNRESET ||
         error_number == ETIMEDOUT || error_number == ECONNABORTED || error_number == EINTR;
}

Socket Socket::start_connect(const SocketAddress& address, const std::string& peer, int& problem) {
  FileDescriptor descriptor = make_socket(address);
  set_no_delay(descriptor.get(), address.family());
  problem = ::connect(descriptor.get(), address.raw(), address.length()) == 0 ? 0 : errno;
  if (problem != 0 && problem != EINPROGRESS)
    return {};
  problem = 0;
  return {std::move(descriptor), peer};
}

int Socket::connect_error() const {
  return result_of_connect(descriptor_.get());
}

void Socket::end_sending() {
  shutdown(descriptor_.get(), SHUT_WR);
}

Socket Socket::connect(const SocketAddress& address, const std::string& peer,
                       const Deadline& deadline, const WaitCheck& check) {
  const std::string subject = peer + " at " + address.text();
  double pause_s = first_pause_s;
  for (;;) {
    FileDescriptor descriptor = make_socket(address);
    set_no_delay(descriptor.get(), address.family());
    const int problem = try_connect(descriptor.get(), address, deadline, check);
    if (problem == 0)
      return {std::move(descriptor), peer};
    if (problem != ETIME && !connect_may_be_retried(problem))
      throw system_error(subject, "connect", problem, fix_for(problem));
    descriptor.reset();
    if (problem != ETIME && !deadline.passed())
      pause(deadline, pause_s, check);
    if (problem == ETIME || deadline.passed())
      throw Error(ExitCode::deadline, subject, "connect",
                  problem == ETIME ? "timed out without a reply"
                                   : std::string("timed out: ") + std::strerror(problem),
                  "check the output of " + peer + " and the firewall between the hosts, or " +
                      raise_timeout());
    pause_s = std::min(pause_s * 1.5, longest_pause_s);
  }
}

void Socket::send_all(const void* data, std::size_t size_bytes, const Deadline& deadline,
                      const WaitCheck& check) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::size_t sent = 0;
  while (sent < size_bytes) {
    const std::size_t now = send_some(bytes + sent, size_bytes - sent);
    sent += now;
    if (now == 0 && !wait_ready(descriptor_.get(), POLLOUT, deadline, check))
      throw_late(peer_, "send data to it");
  }
}

void Socket::receive_all(void* data, std::size_t size_bytes, const Deadline& deadline,
                         const WaitCheck& check) {
  auto* bytes = static_cast<unsigned char*>(data);
  std::size_t received = 0;
  while (received < size_bytes) {
    const std::size_t now = receive_some(bytes + received, size_bytes - received);
    received += now;
    if (now == 0 && !wait_ready(descriptor_.get(), POLLIN, deadline, check))
      throw_late(peer_, "receive data from it");
  }
}

std::size_t Socket::send_some(const void* data, std::size_t size_bytes) {
  if (size_bytes == 0)
    return 0;
  const ssize_t sent = ::send(descriptor_.get(), data, size_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0)
    return static_cast<std::size_t>(sent);
  if (would_wait(errno))
    return 0;
  throw_lost(peer_, "send data to it", std::strerror(errno));
}

std::size_t Socket::receive_some(void* data, std::size_t size_bytes) {
  if (size_bytes == 0)
    return 0;
  const ssize_t received = ::recv(descriptor_.get(), data, size_bytes, MSG_DONTWAIT);
  if (received > 0)
    return static_cast<std::size_t>(received);
  if (received == 0)
    throw_lost(peer_, "receive data from it", "it closed the connection");
  if (would_wait(errno))
    return 0;
  throw_lost(peer_, "receive data from it", std::strerror(errno));
}

Listener::Listener(const SocketAddress& address) : descriptor_(make_socket(address)) {
  const int on = 1;
  if (address.family() != AF_UNIX)
    setsockopt(descriptor_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.family() == AF_INET6)
    setsockopt(descriptor_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (bind(descriptor_.get(), address.raw(), address.length()) != 0 ||
      listen(descriptor_.get(), listen_backlog) != 0)
    throw system_error(address.text(), "listen", errno, "choose a local address and a free port");
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (getsockname(descriptor_.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    throw system_error(address.text(), "listen", errno, "try again");
  address_ = SocketAddress(reinterpret_cast<const sockaddr*>(&bound), length);
}

Socket Listener::accept(const Deadline& deadline, const WaitCheck& check) {
  for (;;) {
    if (Socket accepted = accept_now())
      return accepted;
    if (!wait_ready(descriptor_.get(), POLLIN, deadline, check))
      throw Error(ExitCode::deadline, address_.text(), "accept a connection", "timed out",
                  "check the output of the other processes, or " + raise_timeout());
  }
}

Socket Listener::accept_now() {
  sockaddr_storage client{};
  socklen_t length = sizeof(client);
  FileDescriptor accepted = make_descriptor([&] {
    length = sizeof(client);
    return accept4(descriptor_.get(), reinterpret_cast<sockaddr*>(&client), &length,
                   SOCK_NONBLOCK | SOCK_CLOEXEC);
  });
  if (!accepted) {
    // accept(2) on Linux also returns network errors of connections that failed in the queue.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM ||
        errno == EBADF || errno == EINVAL || errno == ENOTSOCK)
      throw system_error(address_.text(), "accept a connection", errno, fix_for(errno));
    return {};
  }
  set_no_delay(accepted.get(), address_.family());
  return {std::move(accepted), name_of_client(client, length)};
}

namespace {

constexpr std::size_t max_unix_name_bytes = 100;
constexpr std::size_t max_address_bytes = 160;
constexpr const char* unix_prefix = "unix:";

[[noreturn]] void refuse(const std::string& text, const std::string& problem) {
  throw Error(ExitCode::usage, "socket address \"" + printable(text, max_address_bytes) + "\"", "",
              problem, "write it as 10.0.0.1:4711, [fe80::1%INTERFACE]:4711 or unix:NAME");
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
    refuse(text, "it is longer than 160 bytes, or contains a NUL byte");
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
