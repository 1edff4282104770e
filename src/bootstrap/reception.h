// Where strangers connect: only those that present themselves in time are let through.
#pragma once

#include <functional>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/socket.h"
#include "src/bootstrap/frame.h"
#include "src/bootstrap/poll_set.h"

namespace shmemctl {

/// Accepts connections and reads one control frame from each. A connection that sends anything
/// else, or has not sent its frame within two seconds, is closed; of too many that wait, the
/// oldest is closed. Nothing that a stranger does costs more than that.
class Reception {
public:
  static constexpr double patience_s = 2;
  static constexpr std::size_t max_waiting = 1024;

  explicit Reception(std::vector<Listener> listeners) : listeners_(std::move(listeners)) {}

  void prepare(PollSet& set);
  /// Calls `arrived` for each complete frame of the wanted kind. It may close this: then nobody
  /// else arrives.
  using Arrived = std::function<void(Socket, const Bytes& payload)>;
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
  };
  void accept_from(Listener& listener);
  /// False if the guest has to go or has gone through.
  bool hear(Guest& guest, FrameKind wanted, const Arrived& arrived);

  std::vector<Listener> listeners_;
  std::vector<std::size_t> listener_slots_;
  std::vector<Guest> guests_; ///< oldest first
  bool closed_ = false;
};

/// Tells a connection why it is refused, if that can be said without waiting, and ends it.
void refuse(Socket socket, const FailureReport& report) noexcept;

} // namespace shmemctl
