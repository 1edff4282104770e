#include "transports/ibrc/wait.h"

#include <sched.h>
#include <thread>

namespace shmemctl::ibrc {

namespace {

constexpr int polls_before_yield = 2000;
constexpr int yields_before_sleep = 2000;
constexpr int polls_between_clocks = 64;
constexpr auto sleep = std::chrono::microseconds(50);
constexpr auto between_looks = std::chrono::milliseconds(50);

} // namespace

bool Wait::pause() {
  ++count_;
  if (count_ > polls_before_yield + yields_before_sleep)
    std::this_thread::sleep_for(sleep);
  else if (count_ > polls_before_yield)
    ::sched_yield();
  else if (count_ % polls_between_clocks != 0)
    return false;
  const auto now = Deadline::Clock::now();
  if (!deadline_) {
    deadline_ = Deadline(now + std::chrono::duration_cast<Deadline::Clock::duration>(
                                   std::chrono::duration<double>(timeout_s_)));
    next_look_ = now + between_looks;
    return false;
  }
  if (now < next_look_)
    return false;
  next_look_ = now + between_looks;
  if (!told_) {
    if (for_device_)
      health_.waiting_for_network(peer_);
    else
      health_.waiting_for(peer_);
    told_ = true;
  }
  health_.check();
  if (deadline_->passed())
    health_.give_up(step_, peer_);
  return true;
}

} // namespace shmemctl::ibrc
