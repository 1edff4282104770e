// One connection of the lifeline: frames in, frames out, nothing ever waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/socket.h"
#include "src/runtime/failure_detector_wire.h"

namespace shmemctl::lifeline {

/// Notices within about 15 s that the other host is gone (power, cable). No effect on Unix sockets.
void watch_for_silence(const Socket& socket);

/// How the words begin for a connection whose other end may still run.
inline constexpr std::string_view out_of_reach = "its host is out of reach";

/// How a connection ended, in words; nothing while it is open.
using Ending = std::optional<std::string>;

/// An open connection to a neighbour that has shown the secret.
class Link {
public:
  /// @param received what was read from the socket behind the first message
  Link(int peer, Socket socket, std::string received);

  int peer() const { return peer_; }
  int descriptor() const { return socket_.descriptor(); }

  void queue(const Message& message) {
    if (!write_closed_)
      unsent_ += encode(message);
  }
  /// Only if nothing waits to be sent and this phase was not sent yet: a neighbour that does not
  /// read gets the newest phase when it reads again, and costs no memory until then.
  void offer_phase(const PhaseNotice& phase);
  /// Sends what the system takes. An error is none here: what the peer sent before is still to be
  /// read, and reading will tell.
  void flush();
  bool has_unsent() const { return !unsent_.empty(); }

  /// Hands every message that is there to `take`.
  Ending receive(const std::function<void(Message)>& take);
  /// Empties the receive buffer: closing a socket that holds unread data may destroy what was sent.
  void drain();

private:
  Ending decode_received(const std::function<void(Message)>& take);

  int peer_;
  Socket socket_;
  std::string received_, unsent_;
  bool write_closed_ = false;
  std::optional<std::uint32_t> phase_sent_;
};

/// A connection from nobody knows whom: it knocks, is challenged, and then its message decides.
/// Holds few bytes, for a short time.
class Stranger {
public:
  using Clock = std::chrono::steady_clock;
  explicit Stranger(Socket socket) : socket_(std::move(socket)) {}

  int descriptor() const { return socket_.descriptor(); }
  Clock::duration age() const { return Clock::now() - since_; }

  /// Reads what is there, and answers a Knock. `complete` with Hello or Query only, behind that;
  /// garbage also if it has closed.
  Decoding receive();
  const Message& message() const { return message_; }
  /// Once a message is complete.
  const Handshake& handshake() const { return *handshake_; }
  /// Sends what fits at once.
  void answer(const Message& message);
  Socket take_socket() { return std::move(socket_); }
  std::string take_rest() { return std::move(received_); }

private:
  Socket socket_;
  std::string received_;
  Message message_ = Goodbye{};
  std::optional<Handshake> handshake_; ///< once it has knocked
  Clock::time_point since_ = Clock::now();
};

} // namespace shmemctl::lifeline
