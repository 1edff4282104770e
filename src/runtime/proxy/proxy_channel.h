// What producers and the proxy thread of one proxy share, on the host's side: the ring's memory,
// results, the first error, and the words of a wait that took too long.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/error.h"
#include "src/base/job_health.h"
#include "src/runtime/proxy/host_atomics.h"
#include "src/runtime/proxy/proxy_drain.h"
#include "src/runtime/proxy/proxy_request.h"

namespace shmemctl {

struct ProxyOptions {
  std::size_t capacity = 4096;    ///< requests in the ring; a power of two, 2 to 2^24
  std::uint32_t n_results = 1024; ///< producers that may wait for an answer at once
  ProxyDrainLimits limits;
  double timeout_s = 60; ///< of every wait, and of a stop
  /// How an idle proxy thread waits: it spins, then yields, then sleeps, 2 µs first and at most
  /// this long: the bound of what a request to a sleeping proxy is late by.
  int idle_spins = 2000, idle_yields = 2000;
  std::chrono::microseconds longest_nap{50};
  std::uint64_t first_sequence = 0; ///< where the numbers begin: tests let them wrap around
};

class ProxyChannel {
public:
  using Producer = RingProducer<ProxyTraits, HostAtomics>;

  /// Throws Error (usage) for options that make no ring, Error (unavailable) without memory.
  ProxyChannel(JobHealth& health, const ProxyOptions& options);
  ProxyChannel(const ProxyChannel&) = delete;
  ProxyChannel& operator=(const ProxyChannel&) = delete;

  const ProxyRingView& view() const { return view_; }
  ProxyHeader& header() { return *header_; }
  const ProxyHeader& header() const { return *header_; }
  const ProxyOptions& options() const { return options_; }
  JobHealth& health() const { return health_; }

  // Results.

  struct Result {
    std::uint32_t number;
    std::uint8_t last_tag;
  };
  /// Throws Error (unavailable) when all are taken.
  Result claim_result();
  /// With the tag of its last request; only if that was answered.
  void release_result(const Result& result) noexcept;

  // The first error, which ends the proxy's work for everybody.

  enum class Condition : std::uint64_t {
    well = 0,
    failed = 1, ///< requests are still taken, and answered as failed
    stuck = 2   ///< nothing more will be answered: a slot stays empty, or the thread has left
  };
  Condition condition() const {
    // Acquire: who sees a failure reads the error after it.
    return static_cast<Condition>(HostAtomics::load_acquire(&header_->failed));
  }
  /// Keeps the error, if it is the first one.
  void fail(const Error& error, Condition condition = Condition::failed) noexcept;
  /// Throws the error that was kept.
  [[noreturn]] void throw_failure() const;

  /// A wait's deadline has passed: throws Error (deadline) that names who is behind. That is the PE
  /// that the proxy thread is busy with (by JobHealth::give_up), or else a producer that has not
  /// filled its slot, or the proxy thread: these are in this process, and no PE is to blame.
  [[noreturn]] void give_up(const std::string& step);
  /// The error for a wait that nobody but this process is to blame for.
  Error overdue(const std::string& step) const;

  void add_stalled(std::chrono::nanoseconds time) noexcept {
    stalled_ns_.fetch_add(time.count(), std::memory_order_relaxed);
  }
  double stalled_s() const {
    return static_cast<double>(stalled_ns_.load(std::memory_order_relaxed)) * 1e-9;
  }

private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  std::string culprit() const;

  JobHealth& health_;
  ProxyOptions options_;
  std::unique_ptr<std::byte, Free> memory_;
  ProxyHeader* header_ = nullptr;
  ProxyRingView view_{};
  std::mutex mutex_; ///< of free_results_
  std::vector<Result> free_results_;
  mutable std::mutex error_mutex_;
  std::optional<Error> error_;
  std::atomic<std::int64_t> stalled_ns_{0};
};

/// A producer's wait, for RingProducer: spins, then yields, then sleeps up to 50 µs. From then on
/// it looks at the job's health and its deadline, so pause() throws Error.
class ProxyWait {
public:
  ProxyWait(ProxyChannel& channel, const char* step) : channel_(channel), step_(step) {}
  ~ProxyWait() {
    if (began_)
      channel_.add_stalled(Deadline::Clock::now() - *began_);
  }
  ProxyWait(const ProxyWait&) = delete;
  ProxyWait& operator=(const ProxyWait&) = delete;

  void start() {}
  void stop() {}
  bool pause() {
    if (++turns_ <= spins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
      return true;
    }
    return pause_long();
  }

private:
  static constexpr int spins = 200;
  bool pause_long();

  ProxyChannel& channel_;
  const char* step_;
  int turns_ = 0;
  std::optional<Deadline::Clock::time_point> began_;
};

} // namespace shmemctl
