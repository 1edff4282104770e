// How long and how politely a staged transport waits.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "src/base/deadline.h"
#include "src/base/job_health.h"

namespace shmemctl::staged {

/// A wait for a peer: polls, yields, then sleeps. Throws what JobHealth throws: a failure of the
/// job, or no progress for `timeout_s`.
class Wait {
public:
  Wait(JobHealth& health, double timeout_s, const char* step, int peer)
      : health_(health), timeout_s_(timeout_s), step_(step), peer_(peer) {}
  ~Wait() {
    if (until_)
      health_.waiting_for(-1);
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  /// Between two unsuccessful polls. True now and then: time for rare checks.
  bool pause() {
    ++turns_;
    if (turns_ <= spins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
      return false;
    }
    if (turns_ <= spins + yields)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(nap);
    if (turns_ % turns_between_looks != 0)
      return false;
    if (!until_) {
      until_ = Deadline::after(std::chrono::duration<double>(timeout_s_));
      health_.waiting_for(peer_);
    }
    health_.check();
    if (until_->passed())
      health_.give_up(step_, peer_);
    return true;
  }
  /// Progress: restarts the deadline.
  void came() {
    if (until_)
      until_ = Deadline::after(std::chrono::duration<double>(timeout_s_));
  }

private:
  static constexpr unsigned spins = 500, yields = 2000, turns_between_looks = 250;
  static constexpr std::chrono::microseconds nap{50};
  JobHealth& health_;
  double timeout_s_;
  const char* step_;
  int peer_;
  unsigned turns_ = 0;
  std::optional<Deadline> until_;
};

} // namespace shmemctl::staged
