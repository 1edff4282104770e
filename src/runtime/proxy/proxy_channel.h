// The data that producers and the threads of one proxy share on the host: the rings and their
// memory, the first error, and the waits.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/abi/proxy_request.h"
#include "src/base/deadline.h"
#include "src/base/error.h"
#include "src/base/host_atomics.h"
#include "src/base/job_health.h"
#include "src/base/wait.h"
#include "src/model/topo/cpus.h"
#include "src/runtime/proxy/proxy_drain.h"

namespace shmemctl {

struct ProxyOptions {
  unsigned threads = 1; ///< 1 to max_proxy_threads; each has a ring
  /// By PE: its ring. Empty: PE p has ring p modulo `threads`.
  std::vector<std::uint8_t> fifo_of_pe;
  /// By thread: the CPUs that it may use. If the list or an element is empty: those of the thread
  /// that starts it.
  std::vector<CpuSet> cpus;
  std::size_t capacity = 4096;    ///< requests in a ring; a power of two, 2 to 2^24
  std::uint32_t n_results = 1024; ///< result slots of a ring; a host producer that waited keeps one
  ProxyDrainLimits limits;
  double timeout_s = 60; ///< limit of every wait, and of a stop
  /// How an idle proxy thread waits: it spins for at most this many polls and this long, then
  /// yields, then sleeps, first for 2 µs and then up to `max_sleep`, which bounds the latency that
  /// a sleeping proxy adds to a request.
  int idle_spins = 2000, idle_yields = 2000;
  std::chrono::microseconds max_spin{50}, max_sleep{50};
  /// `issued` is counted in memory that the proxy's threads do not read (GPU memory); the header's
  /// counter is updated before a stop.
  bool issued_in_device_memory = false;
  std::uint64_t first_sequence = 0; ///< first sequence number; tests use it to let numbers wrap
};

class ProxyMemory {
public:
  /// Throws Error: usage for invalid ring options; unavailable if there is no memory.
  explicit ProxyMemory(const ProxyOptions& options);
  ProxyMemory(const ProxyMemory&) = delete;
  ProxyMemory& operator=(const ProxyMemory&) = delete;

  const ProxyFifoView& view() const { return view_; }
  ProxyHeader& header() { return *header_; }
  const ProxyHeader& header() const { return *header_; }

  struct Result {
    std::uint32_t number;
    std::uint8_t last_tag;
  };
  /// Throws Error (unavailable) if all are in use. Thread safe, like release_result().
  Result claim_result();
  /// `result` must contain the tag of its last request, which must have been answered.
  void release_result(const Result& result) noexcept;

  /// Why the next request in the ring is not executed, as far as the ring shows it.
  std::string blocked_by() const;

private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  std::unique_ptr<std::byte, Free> memory_;
  ProxyHeader* header_ = nullptr;
  ProxyFifoView view_{};
  std::mutex mutex_; ///< guards free_results_
  std::vector<Result> free_results_;
};

class ProxyChannel {
public:
  using Producer = FifoProducer<ProxyTraits, HostAtomics>;

  /// @param n_pes number of PEs, each of which is assigned to a ring
  /// Throws Error: usage for invalid ring options; unavailable if there is no memory.
  ProxyChannel(JobHealth& health, const ProxyOptions& options, std::size_t n_pes = 1);
  ProxyChannel(const ProxyChannel&) = delete;
  ProxyChannel& operator=(const ProxyChannel&) = delete;

  unsigned n_fifos() const { return static_cast<unsigned>(memories_.size()); }
  ProxyMemory& memory(unsigned ring) { return *memories_[ring]; }
  const ProxyMemory& memory(unsigned ring) const { return *memories_[ring]; }
  const ProxyFifoView& view(unsigned ring = 0) const { return views_[ring]; }
  ProxyHeader& header(unsigned ring = 0) { return memories_[ring]->header(); }
  /// The ring for requests to a PE.
  unsigned fifo_of(int pe) const { return n_fifos() == 1 ? 0 : shmemctl::fifo_of(rings_, pe); }
  /// All rings, in the form in which kernels get them.
  const ProxyFifos& rings() const { return rings_; }
  const ProxyOptions& options() const { return options_; }
  JobHealth& health() const { return health_; }

  // The first error, which ends the proxy's work for all producers.

  enum class Condition : std::uint64_t {
    well = 0,
    failed = 1, ///< requests are still taken, and answered as failed
    stuck = 2   ///< no more requests are answered: a slot stays empty, or the thread has ended
  };
  /// The condition of a ring; if one ring has failed, all have.
  Condition condition(unsigned ring = 0) const {
    // Acquire: a producer that sees the failure also sees the error.
    return static_cast<Condition>(HostAtomics::load_acquire(&memories_[ring]->header().failed));
  }
  /// Stores the error if it is the first one, and fails all rings; `condition` applies to `ring`,
  /// and the other rings become `failed`.
  void fail(const Error& error, Condition condition = Condition::failed,
            unsigned ring = 0) noexcept;
  /// Throws the stored error.
  [[noreturn]] void throw_failure() const;

  /// For a wait for this ring that has passed its deadline: throws Error (deadline) that names the
  /// cause. If the ring's thread is in an operation to a PE, the cause is found by
  /// JobHealth::give_up(). Otherwise it is in this process: a producer that has not filled its
  /// slot, or the thread.
  [[noreturn]] void give_up(const std::string& step, unsigned ring);
  /// The timeout error of a wait whose cause is in this process.
  Error timeout_error(const std::string& step, unsigned ring) const;

  void add_stalled(std::chrono::nanoseconds time) noexcept {
    stalled_ns_.fetch_add(time.count(), std::memory_order_relaxed);
  }
  double stalled_s() const {
    return static_cast<double>(stalled_ns_.load(std::memory_order_relaxed)) * 1e-9;
  }

private:
  JobHealth& health_;
  ProxyOptions options_;
  std::vector<std::unique_ptr<ProxyMemory>> memories_;
  std::vector<ProxyFifoView> views_;
  ProxyFifos rings_{};
  mutable std::mutex error_mutex_;
  std::optional<Error> error_;
  std::atomic<std::int64_t> stalled_ns_{0};
};

/// The wait of a producer, for FifoProducer: spins, then yields, then sleeps 50 µs at a time. After
/// the spins it also checks the job's health and its deadline, so pause() may throw Error.
class ProxyWait {
public:
  ProxyWait(ProxyChannel& channel, unsigned ring, const char* step)
      : channel_(channel), ring_(ring), step_(step) {}
  ~ProxyWait() {
    if (began_)
      channel_.add_stalled(Deadline::Clock::now() - *began_);
  }
  ProxyWait(const ProxyWait&) = delete;
  ProxyWait& operator=(const ProxyWait&) = delete;

  void start() {}
  void stop() {}
  bool pause() {
    if (++polls_ > policy.spins)
      return pause_long();
    backoff_.pause();
    return true;
  }
  /// Continues the present wait for another ring.
  void go_on_with(unsigned ring) { ring_ = ring; }

private:
  bool pause_long();

  static constexpr BackoffPolicy policy{.spins = 200,
                                        .yields = 200,
                                        .first_sleep = std::chrono::microseconds(50),
                                        .max_sleep = std::chrono::microseconds(50)};

  ProxyChannel& channel_;
  unsigned ring_;
  const char* step_;
  Backoff backoff_{policy};
  unsigned polls_ = 0;
  std::optional<Deadline::Clock::time_point> began_;
};

} // namespace shmemctl
