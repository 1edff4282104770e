// How a wait that polls lets others work: first the processor's other tasks, then longer sleeps.
#pragma once

#include <algorithm>
#include <chrono>
#include <sched.h>
#include <thread>

namespace shmemctl {

/// For waits of milliseconds whose poll is a call into a library: it never spins. Waits on a word
/// in memory are SpinBackoff's (src/runtime/rma.cpp).
class PollBackoff {
public:
  /// Gives the processor away; after a while sleeps, up to 1 ms.
  void pause() {
    if (++turns_ < yields) {
      ::sched_yield();
      return;
    }
    std::this_thread::sleep_for(nap_);
    nap_ = std::min(nap_ * 2, longest_nap);
  }

private:
  static constexpr int yields = 200;
  static constexpr std::chrono::microseconds longest_nap{1000};
  int turns_ = 0;
  std::chrono::microseconds nap_{20};
};

} // namespace shmemctl
