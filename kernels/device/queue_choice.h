// Which of the kernels' queues to a PE an operation takes. For host and device.
#pragma once

#include "kernels/device_network.h"
#include "transports/direct/queue_table.h"

namespace shmemctl::device {

/// How many queues kernels have to that PE: to each of its NICs one of every lane. Number q is that
/// of rail q % rails and of the kernels' lane q / rails.
SHMEMCTL_HOST_DEVICE inline std::uint32_t queues_to(const DeviceNetwork& network,
                                                    std::uint32_t pe) {
  return network.queues->rails_to(pe) * network.n_queue_lanes;
}
/// The one that caller `caller` (a block, or a warp) uses, so that callers do not wait for each
/// other's turn.
SHMEMCTL_HOST_DEVICE inline std::uint32_t queue_of(const DeviceNetwork& network, std::uint32_t pe,
                                                   std::uint32_t caller) {
  return caller % queues_to(network, pe);
}
/// The same for atomics: only those of its first NIC, since two HCAs know nothing of each other's
/// atomics.
SHMEMCTL_HOST_DEVICE inline std::uint32_t atomic_queue_of(const DeviceNetwork& network,
                                                          std::uint32_t pe, std::uint32_t caller) {
  return caller % network.n_queue_lanes * network.queues->rails_to(pe);
}
/// Whether a caller's operations on that PE all go to one queue, in whose order they are done.
SHMEMCTL_HOST_DEVICE inline bool has_one_queue(const DeviceNetwork& network, std::uint32_t pe) {
  return network.queues->rails_to(pe) == 1 &&
         (network.n_queue_lanes == 1 || network.queue_by_warp == 0);
}

} // namespace shmemctl::device
