// Ends a process that computes, and so would not notice, when the job has failed.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "src/base/error.h"
#include "src/base/job_health.h"

namespace shmemctl::api {

/// A thread that asks the job's health now and then. After a failure it leaves the program's own
/// threads a moment to meet it in a call, where ending is cleaner.
class Watcher {
public:
  /// @param on_failure called at most once, on the watcher's thread
  Watcher(const JobHealth& health, std::function<void(const Error&)> on_failure);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

private:
  void watch();
  /// False if it is time to stop.
  bool pause(std::chrono::milliseconds time);

  const JobHealth& health_;
  std::function<void(const Error&)> on_failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

} // namespace shmemctl::api
