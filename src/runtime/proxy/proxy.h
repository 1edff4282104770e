// The proxy: host threads that execute the requests of producers which cannot drive a network
// themselves (kernels), or do not want to; and its contexts of the transports. See
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

/// The context that the runtime's own proxy uses; its further threads use those before it.
inline constexpr int proxy_context = limits::max_contexts - 1;
/// OpenSHMEM programs get the contexts before this one, whatever the number of threads.
inline constexpr int first_proxy_context =
    limits::max_contexts - static_cast<int>(max_proxy_threads);

/// The transports of staged transfers and of their agent.
inline constexpr int staged_send_context = first_proxy_context;
inline constexpr int staged_agent_context = first_proxy_context + 1;
inline constexpr unsigned staged_contexts = 2;

/// Threads of the kernels' proxy, to whose rings the PEs are assigned by `number modulo threads`,
/// and the context of the first one: after those of the runtime's own proxy.
struct KernelProxyContexts {
  unsigned threads;
  int context;
};
/// @param own_threads of the runtime's proxy
/// Returns as many threads if there are contexts for them; none (0) if there is no context at all.
constexpr KernelProxyContexts kernel_proxy_contexts(unsigned own_threads) {
  for (unsigned threads = own_threads; threads > 0; --threads) {
    // A sink takes a context that is a multiple of its threads before proxy_context.
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
  std::uint64_t max_depth = 0; ///< most requests that one round took, or left in the ring
  std::uint64_t sleeps = 0;    ///< how often the idle thread slept
  double stalled_s = 0;        ///< producers' time in long waits, for room or for an answer, summed
};

/// Drains ring `ring` of the channel into the transports until it is ended.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the padding is the point
class ProxyThread {
public:
  ProxyThread(std::vector<Transport*> transports_by_pe, ProxyChannel& channel, unsigned ring);
  /// Ends it without carrying out what is left.
  ~ProxyThread();
  ProxyThread(const ProxyThread&) = delete;
  ProxyThread& operator=(const ProxyThread&) = delete;

  /// Throws Error (unavailable) if there is no thread, Error (usage) if it may not use these CPUs.
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
  /// Checks the job's health and the end, now and then.
  void check_health();
  bool left_behind() const;

  ProxyChannel& channel_;
  unsigned ring_;
  /// From here on the thread's own: on other lines than what producers read.
  alignas(proxy_line_pair_bytes) TransportSink sink_;
  Drain drain_;
  Deadline drain_until_; ///< from close() on
  std::atomic<bool> stop_{false}, abandon_{false};
  std::atomic<std::uint64_t> requests_{0}, batches_{0}, max_depth_{0}, sleeps_{0};
  std::thread thread_; ///< declared last: the thread uses the other members
};

class Proxy {
public:
  /// Starts the threads. @param transports_by_pe by PE: the transport that serves it (not owned),
  /// as in Rma. Throws Error (usage) for bad options, Error (unavailable) without memory or
  /// threads.
  Proxy(const std::vector<Transport*>& transports_by_pe, JobHealth& health,
        const ProxyOptions& options = {});
  /// Without stop(): refuses what is in the rings, and leaves.
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  /// What producers are made on: `ProxyProducer(proxy.channel(), context)`. Outlives them.
  ProxyChannel& channel() { return channel_; }
  unsigned n_threads() const { return channel_.n_fifos(); }
  /// Accepts no more requests, executes and completes all that were accepted before, and ends the
  /// threads. Throws the first Error of the proxy, also on another call.
  void stop();
  /// All threads together: sums, and the largest depth.
  ProxyStatistics statistics() const;
  /// One thread's; the stalls of producers are not known by thread.
  ProxyStatistics statistics(unsigned ring) const { return threads_[ring]->statistics(); }

private:
  void end_threads(bool abandon);

  ProxyChannel channel_;
  std::vector<std::unique_ptr<ProxyThread>> threads_; ///< by ring
};

// The proxy's options.

/// PROXY_CPUS; empty if it is not set. Throws Error (usage) for a text that is no list of CPUs.
CpuSet proxy_cpus(const Options& options);

/// Rings are assigned round robin, both along the PEs of a node and along the PEs with one local
/// rank, since kernels address their rail's PEs.
/// @param cpus_at_start the CPUs of threads that PROXY_CPUS does not place; empty: the caller's
ProxyOptions proxy_options(const Options& options, const Placement& placement,
                           const CpuSet& cpus_at_start, double timeout_s);

} // namespace shmemctl
