// Which of the kernels' QPs to a PE an operation uses. For host and device.
#pragma once

#include "kernels/device_network.h"
#include "transports/direct/queue_table.h"

namespace shmemctl::device {

/// Number of kernel QPs to that PE: one per path and kernel QP set. QP q uses path q % paths and QP
/// set q / paths.
SHMEMCTL_HOST_DEVICE inline std::uint32_t queues_to(const DeviceNetwork& network,
                                                    std::uint32_t pe) {
  return network.queues->rails_to(pe) * network.n_queue_lanes;
}
/// The QP that caller `caller` (a block, or a warp) uses, so that callers do not wait for each
/// other's turn.
SHMEMCTL_HOST_DEVICE inline std::uint32_t queue_of(const DeviceNetwork& network, std::uint32_t pe,
                                                   std::uint32_t caller) {
  return caller % queues_to(network, pe);
}
/// The QP for atomics: on the first path only, since atomics of two HCAs are not atomic with each
/// other.
SHMEMCTL_HOST_DEVICE inline std::uint32_t atomic_queue_of(const DeviceNetwork& network,
                                                          std::uint32_t pe, std::uint32_t caller) {
  return caller % network.n_queue_lanes * network.queues->rails_to(pe);
}
/// Whether all operations of a caller on that PE go to one QP, which orders them.
SHMEMCTL_HOST_DEVICE inline bool has_one_queue(const DeviceNetwork& network, std::uint32_t pe) {
  return network.queues->rails_to(pe) == 1 &&
         (network.n_queue_lanes == 1 || network.queue_by_warp == 0);
}

} // namespace shmemctl::device
