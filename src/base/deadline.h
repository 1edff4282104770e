// A point in time after which a wait fails. Every wait of the runtime takes one; the loop that
// polls until then is in wait.h.
#pragma once

#include <chrono>

namespace shmemctl {

class Deadline {
public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(Clock::time_point at) : at_(at) {}
  static Deadline after(std::chrono::duration<double> span) {
    return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(span));
  }

  bool passed() const { return Clock::now() >= at_; }
  /// 0 once it has passed.
  double remaining_s() const;
  /// For poll(2): rounded up, 0 once it has passed, at most `cap_ms`.
  int poll_ms(int cap_ms = 1000) const;
  /// The earlier of this and now + span.
  Deadline at_most(std::chrono::duration<double> span) const;
  Clock::time_point at() const { return at_; }

private:
  Clock::time_point at_;
};

} // namespace shmemctl
