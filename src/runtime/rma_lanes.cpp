// What several threads of a PE need of Rma: turns on one context, and progress.
#include "src/runtime/rma.h"

namespace shmemctl {

void Rma::progress() {
  for (Transport* transport : transports_)
    transport->progress();
}

void Rma::serialize(int context, bool on) {
  lanes_[static_cast<std::size_t>(context)].serialized.store(on, std::memory_order_release);
}

std::unique_lock<std::mutex> Rma::turn(int context) {
  Lane& lane = lanes_[static_cast<std::size_t>(context)];
  if (!lane.serialized.load(std::memory_order_acquire))
    return {};
  return std::unique_lock(lane.mutex);
}

} // namespace shmemctl
