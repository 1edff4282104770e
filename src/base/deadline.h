// A point in time after which a wait fails, and the setting by which the user moves it. The loop
// with which the runtime polls until then is in wait.h.
#pragma once

#include <chrono>
#include <string>

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

/// Declares that this process is the shmemctl command, whose user sets the timeout with --timeout.
/// In a program that uses the library, the user sets an environment variable instead. Call once,
/// before there are threads.
void timeout_is_an_option();

/// For the fix of errors: "raise --timeout" or "raise SHMEMCTL_TIMEOUT", whichever applies. Thread
/// safe.
std::string raise_timeout();

} // namespace shmemctl
