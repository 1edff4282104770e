// How long and how politely completions are waited for.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "src/base/deadline.h"
#include "src/base/job_health.h"

namespace shmemctl::ibrc {

/// One wait. Polls without a pause first: an answer takes microseconds; then yields, then sleeps,
/// since who has to answer may need this core.
class Wait {
public:
  /// @param step  what is done, in give_up()'s words: "quiet"
  /// @param peer  whom it depends on; -1 if several
  /// @param for_device  whether the device alone completes it, and not a program of that PE
  Wait(JobHealth& health, double timeout_s, const char* step, int peer, bool for_device)
      : health_(health), timeout_s_(timeout_s), step_(step), peer_(peer), for_device_(for_device) {}
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait() {
    if (told_)
      health_.waiting_for(-1);
  }

  /// Between two polls that found nothing. True every 50 ms or so: time for what is rare. Throws
  /// what JobHealth throws: a failure of the job, or that nothing came for `timeout_s`.
  bool pause();
  /// Something came: the deadline is for the next.
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
