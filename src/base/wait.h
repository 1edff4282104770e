// A wait loop of the host: polls, backs off, checks the job's health, and ends at a deadline.
#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "src/base/deadline.h"
#include "src/base/job_health.h"

namespace shmemctl {

/// The time and the processor of this machine, as used by a wait. Tests use a fake one.
struct HostProcessor {
  using TimePoint = Deadline::Clock::time_point;
  static TimePoint now() { return Deadline::Clock::now(); }
  /// Tells the core that this thread spins (`pause` on x86-64).
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  static void yield() {
    std::this_thread::yield();
  }
  static void sleep(std::chrono::microseconds time) {
    std::this_thread::sleep_for(time);
  }
};

/// What happens between two unsuccessful polls: first the thread spins, then it yields the core
/// (the PE that it waits for may need it), then it sleeps, twice as long each time. While it spins
/// it reads no clock.
struct BackoffPolicy {
  unsigned spins = 100;
  bool relaxes = true; ///< spins with HostProcessor::relax(); false if a poll takes long enough
  unsigned yields = 200;
  /// Yields continue until this much time has passed since the first one: for network completions,
  /// which are faster than a wake-up. 0: `yields` alone decides.
  std::chrono::microseconds min_yield_time{0};
  std::chrono::microseconds first_sleep{1}, max_sleep{200};
  unsigned yields_per_check = 16; ///< pause() returns true once in this many yields, and per sleep
  /// Minimum time between two checks of health and deadline; 0: each time that
  /// BasicBackoff::pause() returns true.
  std::chrono::milliseconds check_interval{0};
};

/// The back-off alone, for waits with their own end condition. Not thread safe.
template <class Processor>
class BasicBackoff {
public:
  explicit BasicBackoff(const BackoffPolicy& policy) : policy_(policy) {}

  /// Spins, yields or sleeps, once. Returns true now and then, never while it spins; the caller
  /// should then read the clock and check the job's health.
  bool pause() {
    if (polls_ < policy_.spins) {
      ++polls_;
      if (policy_.relaxes)
        Processor::relax();
      return false;
    }
    return pause_long();
  }

private:
  bool pause_long() {
    const unsigned yields = ++polls_ - policy_.spins;
    const bool check = policy_.yields_per_check > 0 && yields % policy_.yields_per_check == 0;
    if (!sleeps_)
      sleeps_ = is_time_to_sleep(yields, check);
    if (!sleeps_) {
      Processor::yield();
      return check;
    }
    polls_ = policy_.spins + policy_.yields; // does not overflow
    Processor::sleep(sleep_);
    sleep_ = std::min(2 * sleep_, policy_.max_sleep);
    return true;
  }
  bool is_time_to_sleep(unsigned yields, bool check) {
    if (policy_.min_yield_time.count() == 0)
      return yields > policy_.yields;
    if (!first_yield_) {
      first_yield_ = Processor::now();
      return false;
    }
    return check && Processor::now() - *first_yield_ >= policy_.min_yield_time;
  }

  const BackoffPolicy policy_;
  unsigned polls_ = 0;
  bool sleeps_ = false;
  std::chrono::microseconds sleep_ = policy_.first_sleep;
  std::optional<typename Processor::TimePoint> first_yield_;
};

/// What a wait is for, as its timeout error reports it. `step` must outlive the wait.
struct WaitSubject {
  std::string_view step = {}; ///< "barrier"
  int peer = -1;              ///< the PE that is waited for; -1: several PEs, or unknown
  /// Whether the network or a device completes the wait, without action of the peer's program.
  bool by_network = false;
  /// Called when the deadline has passed, to replace `peer`; may communicate, and throw.
  std::function<int()> find_peer = {};
};

/// One wait. Between two unsuccessful polls the caller calls pause(), which throws the job's
/// failure, or at the deadline the timeout error (JobHealth::give_up()) that names the PE that was
/// waited for. From the first check on, others see which PE this one waits for, if that is known.
/// Not thread safe.
template <class Processor>
class BasicWait {
public:
  using Seconds = std::chrono::duration<double>;

  /// The deadline is `timeout_s` seconds after the first check, so that a wait that succeeds at
  /// once reads no clock.
  BasicWait(JobHealth& health, double timeout_s, WaitSubject subject,
            const BackoffPolicy& policy = {})
      : health_(health), timeout_s_(timeout_s), subject_(std::move(subject)),
        check_interval_(policy.check_interval), backoff_(policy) {}
  BasicWait(JobHealth& health, const Deadline& deadline, WaitSubject subject,
            const BackoffPolicy& policy = {})
      : BasicWait(health, 0, std::move(subject), policy) {
    end_ = deadline.at();
  }
  /// A wait that has thrown leaves the announcement in place: this PE is still blocked in it, and
  /// others that search for the cause follow the chain of waits through it.
  ~BasicWait() {
    if (announced_ && std::uncaught_exceptions() == exceptions_)
      health_.waiting_for(-1);
  }
  BasicWait(const BasicWait&) = delete;
  BasicWait& operator=(const BasicWait&) = delete;

  /// Backs off. Returns true when it has checked health and deadline; the caller may then do rare
  /// tasks. Throws Error: the failure of another PE, or (deadline).
  bool pause() {
    if (!backoff_.pause())
      return false;
    const auto now = Processor::now();
    if (check_interval_.count() > 0) {
      if (!next_check_)
        next_check_ = now + check_interval_;
      if (now < *next_check_) {
        set_end(now);
        return false;
      }
      next_check_ = now + check_interval_;
    }
    check_at(now);
    return true;
  }
  /// Checks health and deadline now, for a caller that blocks in poll(2) or on a condition variable
  /// between two polls. Throws as pause().
  void check() { check_at(Processor::now()); }
  /// Announces at once which PE this PE waits for, without waiting for the first check.
  void announce() {
    announced_ = true;
    exceptions_ = std::uncaught_exceptions();
    subject_.by_network ? health_.waiting_for_network(subject_.peer)
                        : health_.waiting_for(subject_.peer);
  }
  /// Reports partial progress, which restarts the timeout. Only for a wait with a timeout.
  void progressed() { end_.reset(); }
  /// From now on the wait is for this PE.
  void set_peer(int peer) {
    if (std::exchange(subject_.peer, peer) != peer && announced_)
      announce();
  }

private:
  void set_end(typename Processor::TimePoint now) {
    if (!end_)
      end_ = now + std::chrono::duration_cast<typename Processor::TimePoint::duration>(
                       Seconds(timeout_s_));
  }
  void check_at(typename Processor::TimePoint now) {
    if (!announced_ && (subject_.peer >= 0 || subject_.by_network))
      announce();
    health_.check();
    set_end(now);
    if (now < *end_)
      return;
    if (subject_.find_peer) {
      subject_.peer = subject_.find_peer();
      announce();
    }
    health_.give_up(std::string(subject_.step), subject_.peer);
  }

  JobHealth& health_;
  const double timeout_s_;
  WaitSubject subject_;
  const std::chrono::milliseconds check_interval_;
  BasicBackoff<Processor> backoff_;
  bool announced_ = false;
  int exceptions_ = 0; ///< exceptions in flight when the wait was announced
  std::optional<typename Processor::TimePoint> end_, next_check_;
};

using Backoff = BasicBackoff<HostProcessor>;
using Wait = BasicWait<HostProcessor>;

/// Polls `done` until it is true. Throws like Wait::pause().
template <class Done>
void wait_until(Wait& wait, Done&& done) {
  while (!done())
    wait.pause();
}

} // namespace shmemctl
