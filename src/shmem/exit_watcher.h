// Ends a process that computes, and so would not notice, when the job has failed.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "src/base/error.h"

namespace shmemctl::api {

/// A thread that looks now and then whether all is well. After a failure it leaves the program's
/// own threads a moment to meet it in a call, where ending is cleaner.
class Watcher {
public:
  /// @param look       throws an Error once something has failed
  /// @param on_failure called at most once, on the watcher's thread
  Watcher(std::function<void()> look, std::function<void(const Error&)> on_failure);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

private:
  void watch();
  /// False if it is time to stop.
  bool pause(std::chrono::milliseconds time);

  std::function<void()> look_;
  std::function<void(const Error&)> on_failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

} // namespace shmemctl::api
