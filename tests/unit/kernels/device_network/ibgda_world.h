// Jobs of threads whose "kernels" post to the queues of the emulated HCA.
#pragma once

#include "tests/unit/kernels/device_network/kernel_threads.h"
#include "tests/unit/transports/mlx5/transports/mlx5_world.h"

namespace shmemctl::test {

/// The device job of a PE's kernels: everything over the QPs.
struct QueuePe {
  explicit QueuePe(TransportPe& me) {
    DeviceNetworkInputs inputs =
        inputs_of(me.pe, std::vector<Transport*>(static_cast<std::size_t>(me.n_pes), me.transport),
                  "ibgda", *me.health, memory);
    inputs.ibgda = find_ibgda({nullptr, me.transport});
    part.emplace(std::move(inputs));
    network = part->network();
  }
  /// The queue of caller `number`.
  ThreadQueue queue(int pe, std::uint32_t number, ThreadWait& wait) const {
    const auto to = static_cast<std::uint32_t>(pe);
    return {network, to, device::qp_of(network, to, number), number, wait};
  }
  ThreadQueue atomic_queue(int pe, std::uint32_t number, ThreadWait& wait) const {
    const auto to = static_cast<std::uint32_t>(pe);
    return {network, to, device::atomic_qp_of(network, to, number), number, wait};
  }
  /// A get executes after puts through the same QP.
  bool keeps_order(int pe) const {
    return network.queues->queue(static_cast<std::uint32_t>(pe), 0, network.first_qp_set)
        .abilities.orders_writes();
  }

  std::shared_ptr<PlainKernelMemory> memory = std::make_shared<PlainKernelMemory>();
  std::optional<DeviceNetworkPart> part;
  DeviceNetwork network{};
};

inline ThreadQueue::Address heap_address(std::uint64_t offset_bytes) {
  return {region::heap, offset_bytes};
}

inline void run_kernels(const std::function<void(TransportPe&, QueuePe&)>& body, Texts more = {}) {
  more.insert({"DEVICE_PATH", "ibgda"});
  run_mlx5(
      Variant::ibgda,
      [&](TransportPe& me) {
        {
          QueuePe pe(me);
          body(me, pe);
          me.barrier();
          pe.part->stop();
        }
        me.barrier();
      },
      more);
}

} // namespace shmemctl::test
