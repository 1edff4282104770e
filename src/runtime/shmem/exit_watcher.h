// Once the job has failed: ends a process that computes without calling the library.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "src/base/error.h"

namespace shmemctl::api {

/// A thread that checks the job's health at intervals. After a failure it first waits a moment: a
/// thread of the program may notice the failure in a call of the library, where exiting is cleaner.
class ExitWatcher {
public:
  /// @param check       throws an Error once something has failed
  /// @param on_failure called at most once, on the watcher's thread
  ExitWatcher(std::function<void()> check, std::function<void(const Error&)> on_failure);
  ~ExitWatcher();
  ExitWatcher(const ExitWatcher&) = delete;
  ExitWatcher& operator=(const ExitWatcher&) = delete;

private:
  void watch();
  /// Waits for this time. False if the watcher is to stop.
  bool pause(std::chrono::milliseconds time);

  std::function<void()> check_;
  std::function<void(const Error&)> on_failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

} // namespace shmemctl::api
