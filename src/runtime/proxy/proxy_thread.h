// One thread of a proxy, and its ring's reading side.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "src/runtime/proxy/transport_sink.h"

namespace shmemctl {

struct ProxyStatistics {
  std::uint64_t requests = 0;
  std::uint64_t batches = 0;   ///< rounds that found any
  std::uint64_t max_depth = 0; ///< most that one round took, or left behind
  std::uint64_t naps = 0;      ///< times that the idle thread slept
  double stalled_s = 0;        ///< producers' time in long waits, for room or for an answer, summed
};

/// Drains ring `ring` of the channel into the transports until it is told to end.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the padding is the point
class ProxyThread {
public:
  ProxyThread(std::vector<Transport*> way_to, ProxyChannel& channel, unsigned ring);
  /// Ends it without carrying out what is left.
  ~ProxyThread();
  ProxyThread(const ProxyThread&) = delete;
  ProxyThread& operator=(const ProxyThread&) = delete;

  /// Throws Error (unavailable) if there is no thread, Error (usage) if it may not use these CPUs.
  void start(const CpuSet& cpus);
  /// Takes no more requests. What was taken before is carried out and completed, or, if `abandon`,
  /// refused.
  void end(bool abandon);
  void join();
  /// Without stalled_s.
  ProxyStatistics statistics() const;

private:
  using Drain = RingDrain<ProxyTraits, HostAtomics, TransportSink>;

  void run() noexcept;
  void work();
  void count(unsigned taken);
  /// What is looked at now and then: the job's health and the end.
  void look();
  bool left_behind() const;

  ProxyChannel& channel_;
  unsigned ring_;
  /// From here on the thread's own: on other lines than what producers read.
  alignas(proxy_line_pair_bytes) TransportSink sink_;
  Drain drain_;
  Deadline drain_until_; ///< from close() on
  std::atomic<bool> stop_{false}, abandon_{false};
  std::atomic<std::uint64_t> requests_{0}, batches_{0}, max_depth_{0}, naps_{0};
  std::thread thread_; ///< last: it uses the others
};

} // namespace shmemctl
