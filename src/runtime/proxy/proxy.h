// The proxy: host threads that execute requests of producers that cannot drive a network themselves
// (kernels), or choose not to (host threads); and the transports' contexts that it uses. See
// docs/explanation/proxy.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "src/abi/device_state.h"
#include "src/abi/proxy_layout.h"
#include "src/base/options.h"
#include "src/runtime/identity.h"
#include "src/runtime/proxy/proxy_channel.h"
#include "src/runtime/proxy/proxy_producer.h"
#include "src/runtime/proxy/transport_sink.h"

namespace shmemctl {

/// The context of the runtime's own proxy; its other threads use the contexts before this one.
inline constexpr int proxy_context = limits::max_contexts - 1;
/// OpenSHMEM programs get the contexts before this one, whatever the number of proxy threads.
inline constexpr int first_proxy_context =
    limits::max_contexts - static_cast<int>(max_proxy_threads);

/// The contexts of staged transfers and of their agent.
inline constexpr int staged_send_context = first_proxy_context;
inline constexpr int staged_agent_context = first_proxy_context + 1;
inline constexpr unsigned staged_contexts = 2;

/// The number of threads of the kernels' proxy, and the context of the first one. The contexts are
/// separate from those of the runtime's own proxy. A PE that has ring r of the runtime's own proxy
/// has ring r modulo `threads` of the kernels' proxy.
struct KernelProxyContexts {
  unsigned threads;
  int context;
};
/// The largest possible number of threads up to `own_threads`; 0 threads if no context is left.
/// @param own_threads number of threads of the runtime's own proxy
constexpr KernelProxyContexts kernel_proxy_contexts(unsigned own_threads) {
  for (unsigned threads = own_threads; threads > 0; --threads) {
    // A sink requires that proxy_context minus its context is a multiple of the number of threads.
    const unsigned skipped = (own_threads + threads - 1) / threads * threads;
    if (skipped + threads <= max_proxy_threads - staged_contexts)
      return {threads, proxy_context - static_cast<int>(skipped)};
  }
  return {0, proxy_context};
}

// One thread of a proxy: the consumer of its ring.

struct ProxyStatistics {
  std::uint64_t requests = 0;
  std::uint64_t batches = 0;   ///< rounds that found a request
  std::uint64_t max_depth = 0; ///< most requests that a round took, or left in the ring
  std::uint64_t sleeps = 0;    ///< number of sleeps of the idle thread
  double stalled_s = 0;        ///< sum of producers' time in long waits for room or for an answer
};

/// Executes the requests of ring `ring` of the channel on the transports until it is ended.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the padding is the point
class ProxyThread {
public:
  ProxyThread(std::vector<Transport*> transports_by_pe, ProxyChannel& channel, unsigned ring);
  /// Ends the thread; the remaining requests are refused.
  ~ProxyThread();
  ProxyThread(const ProxyThread&) = delete;
  ProxyThread& operator=(const ProxyThread&) = delete;

  /// Throws Error: unavailable if the thread cannot be started; usage if it may not use these CPUs.
  void start(const CpuSet& cpus);
  /// Accepts no more requests. Those accepted before are executed and completed, or, with
  /// `abandon`, refused.
  void end(bool abandon);
  void join();
  /// Without stalled_s.
  ProxyStatistics statistics() const;

private:
  using Drain = RingDrain<ProxyTraits, HostAtomics, TransportSink>;

  void run() noexcept;
  void work();
  void count(unsigned taken);
  /// Checks the job's health, and whether the thread is to end. Called now and then.
  void check_health();
  bool left_behind() const;

  ProxyChannel& channel_;
  unsigned ring_;
  /// The members from here on are used by the thread itself, and are not in the cache lines that
  /// producers read.
  alignas(proxy_line_pair_bytes) TransportSink sink_;
  Drain drain_;
  Deadline drain_until_; ///< once the ring is closed: end of the time for its last requests
  std::atomic<bool> stop_{false}, abandon_{false};
  std::atomic<std::uint64_t> requests_{0}, batches_{0}, max_depth_{0}, sleeps_{0};
  std::thread thread_; ///< declared last: the thread uses the other members
};

class Proxy {
public:
  /// Starts the threads. Throws Error: usage for invalid options; unavailable if there is no memory
  /// or no thread.
  /// @param transports_by_pe by PE: its transport (not owned), as in Rma
  Proxy(const std::vector<Transport*>& transports_by_pe, JobHealth& health,
        const ProxyOptions& options = {});
  /// If stop() was not called, refuses the requests that are in the rings.
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  /// The channel for producers: `ProxyProducer(proxy.channel(), context)`. It must outlive them.
  ProxyChannel& channel() { return channel_; }
  unsigned n_threads() const { return channel_.n_fifos(); }
  /// Accepts no more requests, executes and completes all that were accepted before, and ends the
  /// threads. Throws the first Error of the proxy, also in later calls.
  void stop();
  /// Of all threads together: sums, and the maximum depth.
  ProxyStatistics statistics() const;
  /// Of one thread, without stalled_s, which is not known by thread.
  ProxyStatistics statistics(unsigned ring) const { return threads_[ring]->statistics(); }

private:
  void end_threads(bool abandon);

  ProxyChannel channel_;
  std::vector<std::unique_ptr<ProxyThread>> threads_; ///< by ring
};

// The proxy's options.

/// The CPUs of PROXY_CPUS; empty if it is not set. Throws Error (usage) if it is not a list of
/// CPUs.
CpuSet proxy_cpus(const Options& options);

/// The options of a proxy. Rings are assigned to PEs round robin, both among the PEs of a node and
/// among the PEs with the same local rank, since kernels often address the PEs of their rail.
/// @param cpus_at_start the CPUs of the threads if PROXY_CPUS is not set; empty: those of the
/// caller
ProxyOptions proxy_options(const Options& options, const Placement& placement,
                           const CpuSet& cpus_at_start, double timeout_s);

} // namespace shmemctl
