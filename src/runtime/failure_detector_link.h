// One connection of the failure detector: frames in and out, without blocking.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/socket.h"
#include "src/runtime/failure_detector_wire.h"

namespace shmemctl::failure_detector {

/// Time without received data after which a TCP connection is probed. An idle failure detector
/// sends nothing else.
inline constexpr int probe_after_s = 5;

/// Sets TCP keepalive so that the loss of the other host (power, cable) is detected within about 15
/// s. No effect on Unix sockets.
void watch_for_silence(const Socket& socket);

/// Prefix of an Ending after which the other process may still be running.
inline constexpr std::string_view out_of_reach = "its host is out of reach";

/// The reason why a connection ended; nothing while it is open.
using Ending = std::optional<std::string>;

/// An open connection to a neighbour that has proven that it knows the secret.
class Link {
public:
  /// @param received bytes already read from the socket after the first message
  Link(int peer, Socket socket, std::string received);

  int peer() const { return peer_; }
  int descriptor() const { return socket_.descriptor(); }

  void queue(const Message& message) {
    if (!write_closed_)
      unsent_ += encode(message);
  }
  /// Queues the phase if nothing is unsent and this phase was not sent yet: a neighbour that does
  /// not read gets only the newest phase when it reads again, and uses no memory until then.
  void offer_phase(const PhaseNotice& phase);
  /// Sends as much as the kernel accepts. Ignores send errors, because data that the peer sent
  /// before must still be read, and receive() will then report the error.
  void flush();
  bool has_unsent() const { return !unsent_.empty(); }

  /// Passes the messages that have arrived to `take`. Returns why the connection has ended, if so.
  Ending receive(const std::function<void(Message)>& take);
  /// Empties the receive buffer: if a socket is closed with unread data, data that was sent before
  /// may be lost.
  void drain();

private:
  Ending decode_received(const std::function<void(Message)>& take);

  int peer_;
  Socket socket_;
  std::string received_, unsent_;
  bool write_closed_ = false;
  std::optional<std::uint32_t> phase_sent_;
};

/// An accepted connection that has not authenticated yet: the peer sends a ConnectionRequest, gets
/// a Challenge, and its next message must prove that it knows the secret. Stores few bytes, for a
/// short time.
class PendingConnection {
public:
  using Clock = std::chrono::steady_clock;
  explicit PendingConnection(Socket socket) : socket_(std::move(socket)) {}

  int descriptor() const { return socket_.descriptor(); }
  Clock::duration age() const { return Clock::now() - since_; }

  /// Reads what has arrived, and answers a ConnectionRequest. Returns `complete` only after the
  /// Hello or Query that follows it, and `garbage` also if the peer has closed the connection.
  Decoding receive();
  const Message& message() const { return message_; }
  /// Valid once receive() has returned `complete`.
  const Handshake& handshake() const { return *handshake_; }
  /// Sends the message without waiting; what does not fit into the socket buffer is dropped.
  void answer(const Message& message);
  Socket take_socket() { return std::move(socket_); }
  std::string take_rest() { return std::move(received_); }

private:
  Socket socket_;
  std::string received_;
  Message message_ = Goodbye{};
  std::optional<Handshake> handshake_; ///< set by the peer's ConnectionRequest
  Clock::time_point since_ = Clock::now();
};

} // namespace shmemctl::failure_detector
