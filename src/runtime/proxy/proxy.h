// The proxy: host threads that carry out the requests of producers which cannot drive a network
// themselves (kernels), or do not want to. See docs/explanation/proxy.md.
#pragma once

#include <memory>
#include <vector>

#include "src/runtime/proxy/proxy_context.h"
#include "src/runtime/proxy/proxy_producer.h"
#include "src/runtime/proxy/proxy_thread.h"

namespace shmemctl {

class Proxy {
public:
  /// Starts the threads. @param way_to by PE: the transport that serves it (not owned), as in Rma.
  /// Throws Error (usage) for bad options, Error (unavailable) without memory or threads.
  Proxy(const std::vector<Transport*>& way_to, JobHealth& health, const ProxyOptions& options = {});
  /// Without stop(): refuses what is in the rings, and leaves.
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  /// What producers are made on: `ProxyProducer(proxy.channel(), context)`. Outlives them.
  ProxyChannel& channel() { return channel_; }
  unsigned n_threads() const { return channel_.n_rings(); }
  /// Takes no more requests, carries out and completes all that were taken before, and ends the
  /// threads. Throws the first Error that the proxy met, also on another call.
  void stop();
  /// Of all threads: sums, and the largest depth.
  ProxyStatistics statistics() const;
  /// Of one thread; the producers' stalls are not known by thread.
  ProxyStatistics statistics(unsigned ring) const { return threads_[ring]->statistics(); }

private:
  void end_threads(bool abandon);

  ProxyChannel channel_;
  std::vector<std::unique_ptr<ProxyThread>> threads_; ///< by ring
};

} // namespace shmemctl
