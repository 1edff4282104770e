// How long and how politely completions are waited for.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "src/base/deadline.h"
#include "src/base/job_health.h"

namespace shmemctl::ibrc {

/// One wait. First polls without pause: a response takes microseconds; then yields, then sleeps,
/// since the peer may need this core.
class Wait {
public:
  /// @param step what is waited for, as in give_up(): "quiet"
  /// @param peer the PE it depends on; -1 if several
  /// @param for_device whether the HCA alone completes it, and not a program of that PE
  Wait(JobHealth& health, double timeout_s, const char* step, int peer, bool for_device)
      : health_(health), timeout_s_(timeout_s), step_(step), peer_(peer), for_device_(for_device) {}
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait() {
    if (told_)
      health_.waiting_for(-1);
  }

  /// Between two unsuccessful polls. True every 50 ms or so: time for rare checks. Throws what
  /// JobHealth throws: a failure of the job, or no progress for `timeout_s`.
  bool pause();
  /// Progress: restarts the deadline.
  void progress() { deadline_.reset(); }

private:
  JobHealth& health_;
  double timeout_s_;
  const char* step_;
  int peer_;
  bool for_device_;
  int count_ = 0;
  bool told_ = false;
  std::optional<Deadline> deadline_;
  std::chrono::steady_clock::time_point next_look_{};
};

} // namespace shmemctl::ibrc
