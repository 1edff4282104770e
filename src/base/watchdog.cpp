#include "src/base/watchdog.h"

#include <utility>

#include "src/base/service_thread.h"

namespace shmemctl {

Watchdog::Watchdog(std::chrono::duration<double> limit, Expiry on_expiry)
    : on_expiry_(std::move(on_expiry)),
      thread_(start_service_thread("watchdog", [this, limit] { wait(limit); })) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

void Watchdog::phase(std::string words) {
  const std::lock_guard lock(mutex_);
  phase_ = std::move(words);
}

void Watchdog::wait(std::chrono::duration<double> limit) {
  std::string last_phase;
  {
    std::unique_lock lock(mutex_);
    if (stopped_.wait_for(lock, limit, [this] { return stop_; }))
      return;
    last_phase = phase_;
  }
  on_expiry_(last_phase);
}

} // namespace shmemctl
