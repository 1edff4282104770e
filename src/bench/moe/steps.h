// What is being done, for whoever ends a step that hangs.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "src/bench/moe/measure.h"

namespace shmemctl::moe {

/// One step may be many calls, which together take as long as they like: it is said again while it
/// goes on, so that only a call that hangs is taken for one.
class Steps {
public:
  /// From one time that it is said to the next; a watch is set anew each time, which costs.
  static constexpr std::chrono::milliseconds pause{250};

  explicit Steps(const JobRank& rank) : rank_(rank) {}
  void begin(std::string words) {
    words_ = std::move(words);
    say();
  }
  /// Between two calls, and outside of what is timed.
  void go_on() {
    if (is_due())
      say();
  }
  /// Whether go_on() would say it.
  bool is_due() const { return Clock::now() - said_ > pause; }

private:
  using Clock = std::chrono::steady_clock;
  void say() {
    if (rank_.step)
      rank_.step(words_);
    said_ = Clock::now();
  }

  const JobRank& rank_;
  std::string words_;
  Clock::time_point said_ = Clock::now();
};

} // namespace shmemctl::moe
