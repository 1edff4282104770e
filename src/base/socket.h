// TCP and Unix sockets with deadlines.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <sys/socket.h>

#include "src/base/deadline.h"
#include "src/base/file_descriptor.h"

namespace shmemctl {

/// The address of a listening stream socket, as a value that can be sent to other processes as
/// text.
class SocketAddress {
public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t length);
  /// "10.0.0.1:4711", "[fe80::1%eth0]:4711" or "unix:NAME" (abstract, nothing in a file system).
  /// Throws Error (usage) for anything else. Names are not resolved.
  static SocketAddress parse(const std::string& text);
  /// An abstract Unix name, at most 100 bytes.
  static SocketAddress abstract_unix(const std::string& name);

  std::string text() const;
  int family() const { return storage_.ss_family; }
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  /// The same address with another port; no effect on a Unix name.
  SocketAddress with_port(int port) const;
  int port() const;

private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

/// True if a connection that failed with this errno may succeed a little later.
bool connect_may_be_retried(int error_number);

/// Called about every 50 ms by a wait; throws to end it (the job has failed elsewhere).
using WaitCheck = std::function<void()>;

/// A connected stream. If the soft limit of open files is reached, raises it to the hard limit. All
/// calls throw Error: `deadline` when the deadline passes, `unavailable` when the peer has closed
/// the connection or the system refuses the call. Messages name the other side as `peer`.
class Socket {
public:
  Socket() = default;
  Socket(FileDescriptor descriptor, std::string peer);

  /// Retries until the deadline if connect_may_be_retried() (the listener may start later), and
  /// sleeps a little longer each time. The socket is non-blocking, close-on-exec, TCP_NODELAY.
  static Socket connect(const SocketAddress& address, const std::string& peer,
                        const Deadline& deadline, const WaitCheck& check = {});

  /// Starts to connect without waiting; the caller then polls for writing and calls
  /// connect_error(). If the system refuses at once, returns an empty Socket and sets `problem` to
  /// the errno.
  static Socket start_connect(const SocketAddress& address, const std::string& peer, int& problem);
  /// 0 if connected, else the errno of the failure; EINPROGRESS while connecting.
  int connect_error() const;

  explicit operator bool() const { return static_cast<bool>(descriptor_); }
  int descriptor() const { return descriptor_.get(); }
  const std::string& peer() const { return peer_; }
  void set_peer(std::string peer) { peer_ = std::move(peer); }
  void close() { descriptor_.reset(); }
  /// Tells the peer that nothing more will be sent: it reads the remaining data, then the end of
  /// the stream.
  void end_sending();

  void send_all(const void* data, std::size_t size_bytes, const Deadline& deadline,
                const WaitCheck& check = {});
  void receive_all(void* data, std::size_t size_bytes, const Deadline& deadline,
                   const WaitCheck& check = {});
  /// Sends or receives as much as possible without waiting; returns 0 if nothing can be
  /// transferred. Receiving throws if the peer has closed the connection.
  std::size_t send_some(const void* data, std::size_t size_bytes);
  std::size_t receive_some(void* data, std::size_t size_bytes);

private:
  FileDescriptor descriptor_;
  std::string peer_;
};

/// A listening socket, close-on-exec, with a backlog of 4096 (or the system's maximum).
class Listener {
public:
  Listener() = default;
  /// Port 0 takes any free port, which address() returns. Throws Error (unavailable).
  explicit Listener(const SocketAddress& address);

  const SocketAddress& address() const { return address_; }
  int descriptor() const { return descriptor_.get(); }
  explicit operator bool() const { return static_cast<bool>(descriptor_); }
  /// Waits for one connection. Throws Error: deadline; unavailable if the system refuses it.
  Socket accept(const Deadline& deadline, const WaitCheck& check = {});
  /// Accepts a pending connection without waiting; returns an empty Socket if there is none.
  Socket accept_now();

private:
  FileDescriptor descriptor_;
  SocketAddress address_;
};

} // namespace shmemctl
