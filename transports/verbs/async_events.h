// What a device reports without being asked: ports that go down and up, fatal errors.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "transports/verbs/device.h"

namespace shmemctl::verbs {

/// Reads a device's events without waiting. Thread safe.
class AsyncEvents {
public:
  /// The device must outlive this object.
  explicit AsyncEvents(Device& device);

  /// Takes what has come, and logs what concerns a port or the device. Returns at once.
  void poll();
  /// What is known against that port: "the port went down 3 times"; "" if nothing.
  std::string history(int port) const;

private:
  void note(const ibv_async_event& event);

  Device& device_;
  mutable std::mutex mutex_;
  std::map<int, int> went_down_; ///< by port: how often
  std::map<int, bool> is_up_;
  bool fatal_ = false;
};

} // namespace shmemctl::verbs
