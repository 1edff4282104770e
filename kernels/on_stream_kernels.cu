#include "kernels/on_stream_kernels.h"

#include "kernels/shmem_device.cuh"
#include "kernels/stream_wait.cuh"

namespace shmemctl::on_stream::SHMEMCTL_BUILD_VARIANT {

namespace {

__global__ void __launch_bounds__(copy_threads)
    transfer(const __grid_constant__ DeviceJob job, Transfer kind, void* target, const void* source,
             std::size_t size_bytes, SignalOf signal, int pe) {
  wait_for_stream();
  let_next_come();
  if (kind == Transfer::put)
    device::put<device::Block>(job, target, source, size_bytes, pe);
  else if (kind == Transfer::get)
    device::get<device::Block>(job, target, source, size_bytes, pe);
  else
    device::put_signal<device::Block>(job, target, source, size_bytes, signal.word, signal.value,
                                      pe, signal.op);
}

__global__ void wait_for_word(const __grid_constant__ DeviceJob job, const std::uint64_t* word,
                              device::Compare compare, std::uint64_t value, int peer) {
  wait_for_stream();
  device::wait_until<device::Thread>(job, word, compare, value, peer);
}

/// Launched with one warp.
__global__ void order(const __grid_constant__ DeviceJob job, Ordering kind, SignalOf signal, int pe,
                      int team) {
  wait_for_stream();
  let_next_come();
  if (kind == Ordering::barrier) {
    device::barrier<device::Warp>(job, team);
    return;
  }
  if (kind == Ordering::sync) {
    device::sync<device::Warp>(job, team);
    return;
  }
  if (kind == Ordering::quiet) {
    device::quiet<device::Warp>(job);
    return;
  }
  if (threadIdx.x > 0)
    return;
  // The stream's earlier work is complete. The fence orders it before the signal for every
  // observer.
  device::fenced_signal(job, signal.word, signal.value, signal.op, pe);
}

/// Two blocks fit on each SM, so that there is room for another collective, for which peers may
/// wait.
__global__ void __launch_bounds__(block_threads, 2)
    move_in_team(const __grid_constant__ DeviceJob job, Moving moving, int team, void* dest,
                 const void* source, std::size_t size_bytes, int root) {
  wait_for_stream();
  let_next_come();
  if (moving == Moving::broadcast)
    device::broadcast_grid(job, team, dest, source, size_bytes, root);
  else // fcollect and alltoall differ only in the place from which they read
    device::detail::gather<device::Block>(job, team, dest, source, size_bytes,
                                          moving == Moving::fcollect ? 0 : size_bytes,
                                          device::detail::share_of_grid());
}

__global__ void __launch_bounds__(block_threads)
    exchange_in_team(const __grid_constant__ DeviceJob job, int team, void* dest,
                     const void* source, ExchangeLists lists) {
  wait_for_stream();
  device::alltoallv_grid(job, team, dest, source, lists.size_bytes, lists.source_offset_bytes,
                         lists.dest_offset_bytes);
}

} // namespace

Kernels kernels() {
  return {transfer, wait_for_word, order, move_in_team, exchange_in_team};
}

} // namespace shmemctl::on_stream::SHMEMCTL_BUILD_VARIANT
