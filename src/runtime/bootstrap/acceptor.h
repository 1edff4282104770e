// Accepts connections, and passes on those whose peer introduces itself in time.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/socket.h"
#include "src/runtime/bootstrap/frame.h"
#include "src/runtime/bootstrap/poll_set.h"

namespace shmemctl {

/// A peer that has introduced itself: with a join at the rendezvous, or a hello at a PE.
struct AcceptedPeer {
  Socket socket;
  Bytes contents; ///< the frame's payload without the proof
  /// Whether the peer knows the job's secret; if not, nothing that it sends is trusted.
  bool proven = false;
  Bytes welcome; ///< if proven: frame that admits the peer, with the proof of this side
};

/// Accepts connections, answers a connect_request with a challenge, and reads one control frame. A
/// connection that sends anything else, or has not sent its frame within five seconds, is closed.
/// If more than max_waiting connections are pending, the oldest one is closed. These limits bound
/// what unauthenticated peers can cost.
class Acceptor {
public:
  static constexpr double handshake_timeout_s = 5; ///< several round trips of a slow network
  static constexpr std::size_t max_waiting = 1024;

  Acceptor(std::vector<Listener> listeners, const Secret& secret)
      : listeners_(std::move(listeners)), secret_(secret) {}

  void prepare(PollSet& set);
  /// Calls `arrived` for each complete frame of the wanted kind that answers a challenge, with the
  /// right proof or not. `arrived` may call close(); then no further frame is passed on.
  using Arrived = std::function<void(AcceptedPeer)>;
  void advance(const PollSet& set, FrameKind wanted, const Arrived& arrived);
  void close();
  const std::vector<Listener>& listeners() const { return listeners_; }
  std::size_t waiting() const { return pending_.size(); }

private:
  struct Pending {
    Socket socket;
    Deadline until;
    FrameReader reader;
    std::size_t slot = PollSet::none;
    std::optional<Handshake> handshake = {}; ///< set once the peer has requested the connection
  };
  void accept_from(Listener& listener);
  /// False if the connection is to be closed or was passed on.
  bool read(Pending& pending, FrameKind wanted, const Arrived& arrived);
  /// Sends the challenge. False if the connection is to be closed.
  static bool challenge(Pending& pending);
  AcceptedPeer accepted(Pending& pending, Proven proven) const;

  std::vector<Listener> listeners_;
  const Secret secret_;
  std::vector<std::size_t> listener_slots_;
  std::vector<Pending> pending_; ///< oldest first
  bool closed_ = false;
};

/// Sends the reason for the refusal, if that is possible without blocking, and closes the
/// connection.
void refuse(Socket socket, const FailureReport& report) noexcept;

} // namespace shmemctl
