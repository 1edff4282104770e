#include "src/runtime/bootstrap/blocking_calls.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "src/base/service_thread.h"
#include "src/base/wait.h"

namespace shmemctl {

namespace {
constexpr std::chrono::milliseconds health_interval{50};
}

struct BlockingCalls::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> call; ///< set by the owner, taken by the thread
  std::exception_ptr failure;
  bool done = false; ///< the last call has returned
  bool stop = false;
  std::thread thread;
};

BlockingCalls::BlockingCalls() : shared_(std::make_shared<Shared>()) {
  shared_->thread = start_service_thread("bootstrap", [shared = shared_] { serve(shared); });
}

BlockingCalls::~BlockingCalls() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->changed.notify_all();
  if (abandoned_)
    shared_->thread.detach();
  else
    shared_->thread.join();
}

void BlockingCalls::serve(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(lock, [&] { return shared->stop || shared->call; });
    if (shared->stop)
      return;
    std::function<void()> call = std::exchange(shared->call, nullptr);
    lock.unlock();
    std::exception_ptr failure;
    try {
      call();
    } catch (...) {
      failure = std::current_exception();
    }
    call = nullptr; // the captures of the call are destroyed before the owner sees its end
    lock.lock();
    shared->failure = std::move(failure);
    shared->done = true;
    shared->changed.notify_all();
  }
}

void BlockingCalls::run(const std::string& step, std::function<void()> call,
                        const Deadline& deadline, JobHealth& health,
                        const std::function<int()>& culprit) {
  if (abandoned_)
    throw std::logic_error(step + ": an earlier call was left behind");
  std::unique_lock lock(shared_->mutex);
  shared_->call = std::move(call);
  shared_->done = false;
  shared_->changed.notify_all();
  Wait wait(health, deadline, {.step = step, .find_peer = culprit});
  while (!shared_->done) {
    shared_->changed.wait_until(lock, deadline.at_most(health_interval).at());
    if (shared_->done)
      break;
    abandoned_ = true; // remains set if wait.check() throws
    lock.unlock();
    wait.check();
    lock.lock();
    abandoned_ = false;
  }
  if (shared_->failure)
    std::rethrow_exception(std::exchange(shared_->failure, nullptr));
}

bool BlockingCalls::await_abandoned(const Deadline& deadline) {
  std::unique_lock lock(shared_->mutex);
  if (!shared_->changed.wait_until(lock, deadline.at(), [&] { return shared_->done; }))
    return false;
  shared_->failure = nullptr;
  abandoned_ = false;
  return true;
}

} // namespace shmemctl
