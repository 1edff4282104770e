// Where strangers connect: only those that present themselves in time are let through.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/socket.h"
#include "src/bootstrap/frame.h"
#include "src/bootstrap/poll_set.h"

namespace shmemctl {

/// Who has presented itself.
struct Visitor {
  Socket socket;
  Bytes contents;      ///< of its frame, without the proof
  bool proven = false; ///< it has the secret of the job: else nothing it says may be believed
  Bytes welcome;       ///< the frame that lets it in, and shows that this side has the secret too
};

/// Accepts connections, challenges each that knocks, and reads one control frame from it. A
/// connection that sends anything else, or has not sent its frame within five seconds, is closed;
/// of too many that wait, the oldest is closed. Nothing that a stranger does costs more than that.
class Reception {
public:
  static constexpr double patience_s = 5; ///< several round trips of a slow network
  static constexpr std::size_t max_waiting = 1024;

  Reception(std::vector<Listener> listeners, const Secret& secret)
      : listeners_(std::move(listeners)), secret_(secret) {}

  void prepare(PollSet& set);
  /// Calls `arrived` for each complete frame of the wanted kind. It may close this: then nobody
  /// else arrives.
  using Arrived = std::function<void(Visitor)>;
  void advance(const PollSet& set, FrameKind wanted, const Arrived& arrived);
  void close();
  const std::vector<Listener>& listeners() const { return listeners_; }
  std::size_t waiting() const { return guests_.size(); }

private:
  struct Guest {
    Socket socket;
    Deadline until;
    FrameReader reader;
    std::size_t slot = PollSet::none;
    std::optional<Handshake> handshake = {}; ///< once it has knocked
  };
  void accept_from(Listener& listener);
  /// False if the guest has to go or has gone through.
  bool hear(Guest& guest, FrameKind wanted, const Arrived& arrived);
  /// False if it has to go.
  static bool challenge(Guest& guest);
  Visitor visitor(Guest& guest, Proven proven) const;

  std::vector<Listener> listeners_;
  const Secret secret_;
  std::vector<std::size_t> listener_slots_;
  std::vector<Guest> guests_; ///< oldest first
  bool closed_ = false;
};

/// Tells a connection why it is refused, if that can be said without waiting, and ends it.
void refuse(Socket socket, const FailureReport& report) noexcept;

} // namespace shmemctl
