#include <optional>

#include "src/base/service_thread.h"
#include "src/runtime/shmem/exit_watcher.h"

namespace shmemctl::api {

namespace {
constexpr std::chrono::milliseconds interval{50};
constexpr std::chrono::milliseconds moment{300};
} // namespace

ExitWatcher::ExitWatcher(std::function<void()> check, std::function<void(const Error&)> on_failure)
    : check_(std::move(check)), on_failure_(std::move(on_failure)) {
  thread_ = start_service_thread("watcher", [this] { watch(); });
}

ExitWatcher::~ExitWatcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool ExitWatcher::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return stop_; });
}

void ExitWatcher::watch() {
  std::optional<Error> failure;
  while (!failure && pause(interval)) {
    try {
      check_();
    } catch (const Error& error) {
      failure = error;
    }
  }
  if (failure && pause(moment))
    on_failure_(*failure);
}

} // namespace shmemctl::api
