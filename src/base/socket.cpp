#include "src/base/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "src/base/error.h"
#include "src/base/open_files.h"
#include "src/base/timeout_words.h"

namespace shmemctl {

namespace {

constexpr int check_interval_ms = 50;
constexpr int listen_backlog = 4096;
constexpr double first_pause_s = 0.001, longest_pause_s = 0.2;

void call(const WaitCheck& check) {
  if (check)
    check();
}

/// False once the deadline has passed. An interrupted or spurious wait is retried.
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

/// Calls `make` for a descriptor, and once more with a higher limit if there were too many.
template <class Make>
FileDescriptor make_descriptor(const Make& make) {
  FileDescriptor made(make());
  // Another thread may have raised the limit since: then the second attempt succeeds as well.
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
    throw system_error("a socket for " + address.text(), "make", errno, fix_for(errno));
  return made;
}

void set_no_delay(int descriptor, int family) {
  const int on = 1;
  if (family != AF_UNIX)
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/// A client that retries a port of the ephemeral range may by chance be given that very port and
/// meet itself (TCP's simultaneous open).
bool connected_to_itself(int descriptor, int family) {
  if (family == AF_UNIX)
    return false;
  sockaddr_storage mine{}, other{};
  socklen_t mine_length = sizeof(mine), other_length = sizeof(other);
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&mine), &mine_length) != 0 ||
      getpeername(descriptor, reinterpret_cast<sockaddr*>(&other), &other_length) != 0)
    return false;
  return mine_length == other_length && std::memcmp(&mine, &other, mine_length) == 0;
}

/// What became of a connection that was begun: 0, or an errno.
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

/// One attempt: 0, or the errno that it ended with (ETIME: the deadline passed).
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
              "look at the output of " + peer + ": it has ended or closed its connection");
}

[[noreturn]] void throw_late(const std::string& peer, const std::string& attempted) {
  throw Error(ExitCode::deadline, peer, attempted, "the deadline passed",
              "look at the output of " + peer + ", or " + raise_timeout());
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
      throw system_error(subject, "connect to", problem, fix_for(problem));
    descriptor.reset();
    if (problem != ETIME && !deadline.passed())
      pause(deadline, pause_s, check);
    if (problem == ETIME || deadline.passed())
      throw Error(ExitCode::deadline, subject, "connect to",
                  problem == ETIME ? "no answer until the deadline"
                                   : std::string(std::strerror(problem)) + " until the deadline",
                  "look at the output of " + peer + " and at the firewall between the hosts, or " +
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
      throw_late(peer_, "send to");
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
      throw_late(peer_, "receive from");
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
  throw_lost(peer_, "send to", std::strerror(errno));
}

std::size_t Socket::receive_some(void* data, std::size_t size_bytes) {
  if (size_bytes == 0)
    return 0;
  const ssize_t received = ::recv(descriptor_.get(), data, size_bytes, MSG_DONTWAIT);
  if (received > 0)
    return static_cast<std::size_t>(received);
  if (received == 0)
    throw_lost(peer_, "receive from", "it closed the connection");
  if (would_wait(errno))
    return 0;
  throw_lost(peer_, "receive from", std::strerror(errno));
}

Listener::Listener(const SocketAddress& address) : descriptor_(make_socket(address)) {
  const int on = 1;
  if (address.family() != AF_UNIX)
    setsockopt(descriptor_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.family() == AF_INET6)
    setsockopt(descriptor_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (bind(descriptor_.get(), address.raw(), address.length()) != 0 ||
      listen(descriptor_.get(), listen_backlog) != 0)
    throw system_error(address.text(), "listen at", errno,
                       "choose an address of this host and a port that is free");
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (getsockname(descriptor_.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    throw system_error(address.text(), "listen at", errno, "try again");
  address_ = SocketAddress(reinterpret_cast<const sockaddr*>(&bound), length);
}

Socket Listener::accept(const Deadline& deadline, const WaitCheck& check) {
  for (;;) {
    if (Socket accepted = accept_now())
      return accepted;
    if (!wait_ready(descriptor_.get(), POLLIN, deadline, check))
      throw Error(ExitCode::deadline, "a connection at " + address_.text(), "accept",
                  "the deadline passed",
                  "look at the output of the other processes, or " + raise_timeout());
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
    // Linux hands network errors of a connection that died in the queue to accept(2).
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM ||
        errno == EBADF || errno == EINVAL || errno == ENOTSOCK)
      throw system_error("a connection at " + address_.text(), "accept", errno, fix_for(errno));
    return {};
  }
  set_no_delay(accepted.get(), address_.family());
  return {std::move(accepted), name_of_client(client, length)};
}

} // namespace shmemctl
