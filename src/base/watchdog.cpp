// Ends a run whose deadline has passed.
#include "src/base/watchdog.h"

#include <chrono>
#include <cstdlib>
#include <poll.h>
#include <string_view>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "src/base/atomic_file.h"
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

namespace {

constexpr std::chrono::seconds grace{2};

/// Writes to stderr only if it accepts data, because stderr itself may hang.
void say_if_possible(std::string_view text) {
  pollfd writable{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&writable, 1, 0) == 1)
    static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

[[noreturn]] void watch_progress(ExitCode code) {
  std::uint64_t seen = 0, now = write_progress();
  do {
    seen = now;
    std::this_thread::sleep_for(grace);
    now = write_progress();
  } while (now != seen);
  say_if_possible("shmemctl: error: report: cannot write: nothing more could be written for 2 s\n"
                  "shmemctl: fix: look at the file system or pipe that --json or --csv names\n");
  std::_Exit(static_cast<int>(code));
}

} // namespace

void end_if_writing_hangs(ExitCode code) noexcept {
  try {
    std::thread([code] { watch_progress(code); }).detach();
  } catch (const std::system_error&) { // no thread available: then only the caller ends the process
  }
}

} // namespace shmemctl
