// The proxy: a host thread that carries out the requests of producers which cannot drive a network
// themselves (kernels), or do not want to. See docs/proxy.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "src/runtime/proxy/proxy_producer.h"
#include "src/runtime/proxy/transport_sink.h"
#include "src/runtime/state.h"

namespace shmemctl {

/// The context that the runtime's own proxy uses; OpenSHMEM programs get those before it.
inline constexpr int proxy_context = limits::max_contexts - 1;

struct ProxyStatistics {
  std::uint64_t requests = 0;
  std::uint64_t batches = 0;   ///< rounds that found any
  std::uint64_t max_depth = 0; ///< most that one round took, or left behind
  std::uint64_t naps = 0;      ///< times that the idle thread slept
  double stalled_s = 0;        ///< producers' time in long waits, for room or for an answer, summed
};

class Proxy {
public:
  /// Starts the thread. @param way_to by PE: the transport that serves it (not owned), as in Rma.
  /// Throws Error (usage) for bad options, Error (unavailable) without memory or thread.
  Proxy(std::vector<Transport*> way_to, JobHealth& health, const ProxyOptions& options = {});
  /// Without stop(): refuses what is in the ring, and leaves.
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  /// What producers are made on: `ProxyProducer(proxy.channel(), context)`. Outlives them.
  ProxyChannel& channel() { return channel_; }
  /// Takes no more requests, carries out and completes all that were taken before, and ends the
  /// thread. Throws the first Error that the proxy met, also on another call.
  void stop();
  ProxyStatistics statistics() const;

private:
  using Drain = RingDrain<ProxyTraits, HostAtomics, TransportSink>;

  void run() noexcept;
  void work();
  void count(unsigned taken);
  /// What is looked at now and then: the job's health and the end.
  void look();
  bool left_behind() const;
  void end_thread();

  ProxyChannel channel_;
  /// From here on the thread's own: on other lines than what producers read.
  alignas(proxy_line_pair_bytes) TransportSink sink_;
  Drain drain_;
  Deadline drain_until_; ///< from close() on
  std::atomic<bool> stop_{false}, abandon_{false};
  std::atomic<std::uint64_t> requests_{0}, batches_{0}, max_depth_{0}, naps_{0};
  std::thread thread_; ///< last: it uses the others
};

} // namespace shmemctl
