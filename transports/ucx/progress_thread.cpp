#include "transports/ucx/ucx.h"

#if __has_include(<ucp/api/ucp.h>)

#include <cerrno>
#include <poll.h>
#include <sys/eventfd.h>

#include "src/base/error.h"
#include "src/base/service_thread.h"
#include "transports/ucx/progress_thread.h"

namespace shmemctl {

namespace {

constexpr int doze_ms = 1;        // while another thread polls
constexpr int longest_ms = 1'000; // can be long: timers of UCX appear as events
constexpr int rounds_at_once = 64;

} // namespace

UcxProgressThread::UcxProgressThread() : wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wakeup_)
    throw system_error("ucx", "create an eventfd", errno,
                       "raise the limit of open files (ulimit -n)");
  thread_ = start_service_thread("ucx", [this] { run(); });
}

UcxProgressThread::~UcxProgressThread() {
  stop_.store(true, std::memory_order_release);
  wake();
  thread_.join();
}

void UcxProgressThread::wake() {
  const std::uint64_t one = 1;
  // The write fails only if the counter is full, and then the thread wakes up anyway.
  [[maybe_unused]] const auto written = ::write(wakeup_.get(), &one, sizeof one);
}

void UcxProgressThread::add(UcxWorker& worker) {
  {
    const std::lock_guard lock(mutex_);
    added_.push_back(&worker);
  }
  wake();
}

bool UcxProgressThread::serve(UcxWorker& worker) {
  const UcxWorker::Lock lock = worker.lock();
  for (int round = 0; round < rounds_at_once; ++round)
    if (worker.progress() == 0)
      return worker.arm();
  return false;
}

void UcxProgressThread::run() {
  std::vector<Watched> watched;
  std::vector<pollfd> events;
  while (!stop_.load(std::memory_order_acquire)) {
    {
      const std::lock_guard lock(mutex_);
      for (UcxWorker* worker : added_)
        watched.push_back({worker, worker->driven()});
      added_.clear();
    }
    bool again = false, doze = false;
    events.assign(1, {wakeup_.get(), POLLIN, 0});
    for (Watched& each : watched) {
      const unsigned driven = each.worker->driven();
      if (std::exchange(each.driven, driven) != driven)
        doze = true;
      else if (serve(*each.worker))
        events.push_back({each.worker->event_fd(), POLLIN, 0});
      else
        again = true;
    }
    if (again)
      continue;
    ::poll(events.data(), events.size(), doze ? doze_ms : longest_ms);
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = ::read(wakeup_.get(), &count, sizeof count);
  }
}

} // namespace shmemctl

#endif
