#include "src/runtime/proxy/proxy.h"

#include <algorithm>

namespace shmemctl {

Proxy::Proxy(const std::vector<Transport*>& way_to, JobHealth& health, const ProxyOptions& options)
    : channel_(health, options, way_to.size()) {
  for (unsigned ring = 0; ring < channel_.n_rings(); ++ring)
    threads_.push_back(std::make_unique<ProxyThread>(way_to, channel_, ring));
  for (unsigned ring = 0; ring < channel_.n_rings(); ++ring)
    threads_[ring]->start(ring < options.cpus.size() ? options.cpus[ring] : CpuSet());
}

Proxy::~Proxy() {
  end_threads(true);
}

void Proxy::end_threads(bool abandon) {
  for (const auto& thread : threads_)
    thread->end(abandon);
  for (const auto& thread : threads_)
    thread->join();
}

void Proxy::stop() {
  end_threads(false);
  if (channel_.condition() != ProxyChannel::Condition::well)
    channel_.throw_failure();
}

ProxyStatistics Proxy::statistics() const {
  ProxyStatistics sum;
  for (const auto& thread : threads_) {
    const ProxyStatistics one = thread->statistics();
    sum.requests += one.requests;
    sum.batches += one.batches;
    sum.naps += one.naps;
    sum.max_depth = std::max(sum.max_depth, one.max_depth);
  }
  sum.stalled_s = channel_.stalled_s();
  return sum;
}

} // namespace shmemctl
