// A UCX worker: its endpoints to all peers, its lock, and waits that make progress.
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

/// The data that a PE sent in connect().
struct UcxRemote {
  std::string host;
  std::string address;         ///< address of the worker that serves its memory
  std::string presence;        ///< name of the PE's UcxPresence; "" if it cannot be probed
  bool in_memory = false;      ///< whether UCX may reach the PE through shared memory
  bool handles_errors = false; ///< whether UCX can monitor the PE
};

/// The state of one peer in one worker.
struct UcxPeer {
  int pe = -1;
  ucp_ep_h endpoint = nullptr;
  ucs_status_t failure = UCS_OK; ///< status from UCX's error handler
  bool reports_errors = false;   ///< whether UCX monitors the peer
  std::string presence;          ///< UcxPresence to probe if UCX does not monitor the peer; else ""
  bool in_memory = false;        ///< whether some lane is shared memory
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

/// The purpose of a wait, its deadline, and the peer to name on a timeout.
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
  std::uint64_t size_bytes = 0; ///< size from the address to the end of the piece
};

/// Unlocks a lock for a scope, and locks it again at the scope's end.
class UcxUnlocked {
public:
  explicit UcxUnlocked(std::unique_lock<std::mutex>& lock) : lock_(lock) { lock_.unlock(); }
  UcxUnlocked(const UcxUnlocked&) = delete;
  UcxUnlocked& operator=(const UcxUnlocked&) = delete;
  ~UcxUnlocked() { lock_.lock(); }

private:
  std::unique_lock<std::mutex>& lock_;
};

/// All functions need the lock, except lock(), try_progress(), driven(), api(), get() and
/// event_fd().
class UcxWorker {
public:
  using Lock = std::unique_lock<std::mutex>;

  /// Throws Error (unavailable).
  UcxWorker(std::shared_ptr<const UcxContext> context, const UcxMemory& memory, int n_pes);
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;
  /// Flushes operations in flight and closes the endpoints; waits at most a second for each step.
  ~UcxWorker();

  Lock lock();
  const UcxApi& api() const { return context_->api(); }
  ucp_worker_h get() const { return worker_; }
  std::string address();
  /// The text of ucp_worker_print_info().
  std::string printed();

  /// The state of that PE; its endpoint is created on first use.
  UcxPeer& peer(int pe, const UcxRemote& remote);
  /// The same; nullptr if it does not exist yet.
  UcxPeer* known_peer(int pe) { return peers_[static_cast<std::size_t>(pe)].get(); }
  /// Translates an address. Throws Error (unavailable) if the peer's keys do not cover it.
  UcxTarget target(UcxPeer& peer, const RemoteAddress& address);

  unsigned progress() { return api().worker_progress(worker_); }
  /// For callers that poll: does nothing if another thread holds the lock.
  void try_progress();
  /// Count the requests that UCX has not reported complete, except for flushes.
  void begin_request() { ++unfinished_; }
  void end_request() { --unfinished_; }
  /// A counter that threads other than the progress thread increment when they make progress.
  unsigned driven() const { return driven_.load(std::memory_order_relaxed); }
  /// File descriptor that becomes readable when there is something to progress, after arm()
  /// returned true.
  int event_fd() const { return event_fd_; }
  bool arm() { return api().worker_arm(worker_) == UCS_OK; }

  /// Makes progress until `done()`. Throws what the job's health throws.
  template <class Done>
  void wait(Lock& lock, const UcxWait& about, Done&& done);

private:
  class WaitTimeout;
  /// Probes a peer that UCX does not monitor, and records its failure.
  void watch_peer(int pe);
  void describe(UcxPeer& peer);
  void renew_keys(UcxPeer& peer, int region, UcxPeer::Keys& keys);
  struct Closing {
    UcxPeer* peer;
    void* request; ///< request as UCX returned it
    bool complete = false;
  };
  /// Waits for the requests, at most a second.
  /// @param while_well whether to stop waiting for a peer that has failed
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

/// Back-off of a wait: releases the lock for other threads, yields or sleeps, and checks the
/// deadline.
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
  /// After this time, the wait sleeps between polls: a software network may need the core, and a
  /// short sleep is negligible in a long wait.
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
