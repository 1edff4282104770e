// Asynchronous events of a device: ports that go down and up, GIDs that change, QPs and devices
// that fail.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "transports/verbs/device.h"

namespace shmemctl::verbs {

/// Reads a device's events without waiting. Thread safe.
class AsyncEvents {
public:
  /// The device must outlive this object.
  explicit AsyncEvents(Device& device);

  /// Processes pending events and logs them: problems, recoveries, new addresses. Does not block.
  void poll();
  /// Problems of that port: "the port went down 3 times"; "" if none.
  std::string history(int port) const;

private:
  void note(const ibv_async_event& event);
  /// Logs the text once per type of event, since each of thousands of queues may report the same.
  void set_flags_once(ibv_event_type type, const std::string& text);

  Device& device_;
  mutable std::mutex mutex_;
  std::map<int, int> went_down_; ///< by port: how often it went down
  std::map<int, bool> is_up_;
  std::map<int, int> moved_; ///< by port: how often its addresses changed
  std::set<ibv_event_type> reported_;
  bool fatal_ = false;
};

} // namespace shmemctl::verbs
