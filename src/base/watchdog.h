// Ends a run whose deadline has passed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "src/base/error.h"

namespace shmemctl {

/// Calls `on_expiry(phase)` on its own thread if the object still exists after `limit`. The
/// callback should write the results so far and end the process, because a thread that hangs inside
/// a driver call cannot be interrupted.
class Watchdog {
public:
  using Expiry = std::function<void(const std::string& phase)>;
  /// Throws Error (unavailable) if no thread can be started.
  Watchdog(std::chrono::duration<double> limit, Expiry on_expiry);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  /// The current step, as a phrase after "while": "reading NVML". Thread safe.
  void phase(std::string words);

private:
  void wait(std::chrono::duration<double> limit);

  Expiry on_expiry_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::string phase_ = "starting";
  std::thread thread_; // last member: it uses all members above
};

/// For a process that is about to end and only writes its results: from now on it ends with `code`
/// (by _Exit) if a check every two seconds finds that write_progress() has not changed, as on a
/// file system that hangs or a pipe without a reader. It then reports that on stderr, if possible.
void end_if_writing_hangs(ExitCode code) noexcept;

} // namespace shmemctl
