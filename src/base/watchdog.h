// The deadline of a whole run: no call into a driver or a library may hang it for ever.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace shmemctl {

/// Calls `on_expiry(phase)` on a thread of its own if it still exists after `limit`. The callback
/// is expected to write what there is and end the process: a thread that hangs inside a driver
/// call cannot be stopped in any other way.
class Watchdog {
public:
  using Expiry = std::function<void(const std::string& phase)>;
  /// Throws Error (unavailable) where no thread can be started.
  Watchdog(std::chrono::duration<double> limit, Expiry on_expiry);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  /// What is being done, in words that fit "while ...": "reading NVML". Thread safe.
  void phase(std::string words);

private:
  void wait(std::chrono::duration<double> limit);

  Expiry on_expiry_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::string phase_ = "starting";
  std::thread thread_; // last: it uses everything above
};

} // namespace shmemctl
