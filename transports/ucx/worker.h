// A UCX worker: its endpoints to all peers, one lock, and waits that make progress.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/job_health.h"
#include "transports/region_table.h"
#include "transports/ucx/context.h"
#include "transports/ucx/lanes.h"
#include "transports/ucx/memory.h"

namespace shmemctl {

/// Data that a PE has sent in connect().
struct UcxRemote {
  std::string host;
  std::string address;         ///< of the worker that serves its memory
  std::string presence;        ///< UcxPresence of a PE whose end UCX may not notice; "": it does
  bool in_memory = false;      ///< UCX may reach it through memory
  bool handles_errors = false; ///< UCX can monitor it
};

/// One peer as one worker reaches it.
struct UcxPeer {
  int pe = -1;
  ucp_ep_h endpoint = nullptr;
  ucs_status_t failure = UCS_OK; ///< status from UCX's error handler
  bool reports_errors = false;   ///< UCX monitors the peer
  std::string presence;          ///< probed instead
  bool in_memory = false;        ///< some lane is shared memory
  std::vector<UcxLane> lanes;
  NicTraffic traffic;

  /// The unpacked keys of one region, created on first use.
  struct Keys {
    std::uint64_t version = 0;
    UcxMemory::Pieces pieces;
    std::vector<ucp_rkey_h> unpacked;
  };
  std::array<Keys, RegionTable::capacity> keys;
};

/// What a wait is for, and the peer to name on a timeout.
struct UcxWait {
  JobHealth& health;
  Deadline deadline;
  const char* step = "";
  int peer = -1;
};

/// Address and key of a piece of a remote range.
struct UcxTarget {
  std::uint64_t address = 0;
  ucp_rkey_h key = nullptr;
  std::uint64_t size_bytes = 0; ///< up to the end of the piece
};

/// Releases a lock in a scope: unlocks it, and locks it again at the end.
class UcxUnlocked {
public:
  explicit UcxUnlocked(std::unique_lock<std::mutex>& lock) : lock_(lock) { lock_.unlock(); }
  UcxUnlocked(const UcxUnlocked&) = delete;
  UcxUnlocked& operator=(const UcxUnlocked&) = delete;
  ~UcxUnlocked() { lock_.lock(); }

private:
  std::unique_lock<std::mutex>& lock_;
};

/// Everything but try_progress(), driven() and event_fd() needs the lock.
class UcxWorker {
public:
  using Lock = std::unique_lock<std::mutex>;

  /// Throws Error (unavailable).
  UcxWorker(std::shared_ptr<const UcxContext> context, const UcxMemory& memory, int n_pes);
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;
  /// Flushes operations in flight, for at most a second.
  ~UcxWorker();

  Lock lock();
  const UcxApi& api() const { return context_->api(); }
  ucp_worker_h get() const { return worker_; }
  std::string address();
  /// What ucp_worker_print_info() prints.
  std::string printed();

  /// The endpoint to that PE is created on first use.
  UcxPeer& peer(int pe, const UcxRemote& remote);
  /// Nothing if there is none yet.
  UcxPeer* known_peer(int pe) { return peers_[static_cast<std::size_t>(pe)].get(); }
  /// Throws Error (unavailable) for a range that the peer's keys do not cover.
  UcxTarget target(UcxPeer& peer, const RemoteAddress& address);

  unsigned progress() { return api().worker_progress(worker_); }
  /// For callers that poll: does nothing if another thread is in progress.
  void try_progress();
  /// Counts requests that UCX has not said to be complete, flushes excepted.
  void begin_request() { ++unfinished_; }
  void end_request() { --unfinished_; }
  /// Incremented when a thread other than the progress thread makes progress.
  unsigned driven() const { return driven_.load(std::memory_order_relaxed); }
  /// Readable when there is something to progress, once arm() was true.
  int event_fd() const { return event_fd_; }
  bool arm() { return api().worker_arm(worker_) == UCS_OK; }

  /// Makes progress until `done()`. Throws what the job's health throws.
  template <class Done>
  void wait(Lock& lock, const UcxWait& about, Done&& done);

private:
  class WaitTimeout;
  /// A peer that UCX does not look after.
  void watch_peer(int pe);
  void describe(UcxPeer& peer);
  void renew_keys(UcxPeer& peer, int region, UcxPeer::Keys& keys);
  struct Closing {
    UcxPeer* peer;
    void* request; ///< as UCX returned it
    bool complete = false;
  };
  /// @param while_well gives up peers that have failed
  void wait_briefly(std::vector<Closing>& all, bool while_well);
  void close_endpoints();
  void abandon();

  std::shared_ptr<const UcxContext> context_;
  const UcxMemory& memory_;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  std::mutex mutex_;
  std::atomic<int> contenders_{0}; ///< threads that wait for the lock
  std::atomic<unsigned> driven_{0};
  std::vector<std::unique_ptr<UcxPeer>> peers_;
  std::vector<ucp_rkey_h> old_keys_;
  int unfinished_ = 0;
};

/// Back-off of a wait: releases the lock for others, yields, and checks the clock.
class UcxWorker::WaitTimeout {
public:
  WaitTimeout(UcxWorker& worker, Lock& lock, const UcxWait& about)
      : worker_(worker), lock_(lock), about_(about) {}
  WaitTimeout(const WaitTimeout&) = delete;
  WaitTimeout& operator=(const WaitTimeout&) = delete;
  ~WaitTimeout() {
    if (long_)
      about_.health.waiting_for(-1);
  }

  void pause(unsigned events) {
    idle_ = events > 0 ? 0 : idle_ + 1;
    const bool others = worker_.contenders_.load(std::memory_order_relaxed) > 0;
    if (others || idle_ >= turns_before_yield) {
      const UcxUnlocked unlocked(lock_);
      if (naps_ && idle_ >= turns_before_yield)
        std::this_thread::sleep_for(nap);
      else
        std::this_thread::yield();
    }
    if (++turns_ % iterations_between_polls == 0 || naps_)
      check();
  }

private:
  static constexpr unsigned turns_before_yield = 64, iterations_between_polls = 256;
  /// Longer polling takes the core from a software network, and a short sleep is small compared
  /// with such a wait.
  static constexpr auto polling = std::chrono::milliseconds(2);
  static constexpr auto nap = std::chrono::microseconds(50);
  static constexpr auto check_interval = std::chrono::milliseconds(20);

  void check() {
    const auto now = Deadline::Clock::now();
    naps_ = naps_ || now - began_ >= polling;
    if (now - checked_ < check_interval)
      return;
    checked_ = now;
    worker_.watch_peer(about_.peer);
    const UcxUnlocked unlocked(lock_);
    about_.health.waiting_for_network(about_.peer);
    long_ = true;
    about_.health.check();
    if (about_.deadline.passed())
      about_.health.give_up(about_.step, about_.peer);
  }

  UcxWorker& worker_;
  Lock& lock_;
  const UcxWait& about_;
  unsigned idle_ = 0, turns_ = 0;
  bool long_ = false, naps_ = false;
  const Deadline::Clock::time_point began_ = Deadline::Clock::now();
  Deadline::Clock::time_point checked_ = began_;
};

template <class Done>
void UcxWorker::wait(Lock& lock, const UcxWait& about, Done&& done) {
  if (done())
    return;
  WaitTimeout timeout(*this, lock, about);
  for (;;) {
    const unsigned events = progress();
    driven_.fetch_add(1, std::memory_order_relaxed);
    if (done())
      return;
    timeout.pause(events);
  }
}

} // namespace shmemctl
