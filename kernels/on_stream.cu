#include "kernels/on_stream.h"

#include "kernels/on_stream_launch.cuh"

namespace shmemctl::on_stream {

namespace {

/// Copies by one block: as much as a launch takes.
constexpr int copy_threads = 1024;

// Few kernels that do several things: each would bring what they have in common once more.

enum class Transfer { put, get, put_signal };

struct SignalOf {
  std::uint64_t* word;
  std::uint64_t value;
  device::SignalOp op;
};

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

enum class Ordering { signal, quiet, barrier, sync };

/// By a warp.
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
  // What the stream did before is complete; this keeps it ahead of the signal for every observer.
  device::fence();
  if (signal.op == device::SignalOp::set)
    device::signal_set(job, signal.word, signal.value, pe);
  else
    device::signal_add(job, signal.word, signal.value, pe);
}

enum class Moving { broadcast, fcollect, alltoall };

__global__ void __launch_bounds__(block_threads)
    move_in_team(const __grid_constant__ DeviceJob job, Moving moving, int team, void* dest,
                 const void* source, std::size_t size_bytes, int root) {
  wait_for_stream();
  let_next_come();
  if (moving == Moving::broadcast)
    device::broadcast_grid(job, team, dest, source, size_bytes, root);
  else // the same function: they differ in where they read
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

void launch_moving(const Job& job, Moving moving, int team, void* dest, const void* source,
                   std::size_t size_bytes, int root, Stream stream) {
  const std::size_t members = static_cast<std::size_t>(job.device().n_pes);
  const int blocks = plan::is_small(size_bytes, static_cast<int>(members))
                         ? 1
                         : blocks_for(size_bytes * members, std::size_t{16} << 10);
  launch(move_in_team, blocks, block_threads, stream, "launch of a collective", job.device(),
         moving, team, dest, source, size_bytes, root);
}

} // namespace

Job::Job(const DeviceJob& device)
    : device_(device), heap_delta_bytes_(static_cast<std::size_t>(device.n_pes)) {
  require_success(cudaMemcpyAsync(heap_delta_bytes_.data(), device.heap_delta_bytes,
                                  heap_delta_bytes_.size() * sizeof(std::int64_t),
                                  cudaMemcpyDefault, cudaStreamPerThread),
                  "read where the peers' heaps are");
  require_success(cudaStreamSynchronize(cudaStreamPerThread), "read where the peers' heaps are");
}

std::byte* Job::address(const void* local, int pe) const {
  const std::int64_t delta = heap_delta_bytes_[static_cast<std::size_t>(pe)];
  return delta == DeviceJob::unreachable
             ? nullptr
             : reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(local) +
                                            static_cast<std::uintptr_t>(delta));
}

void put(const Job& job, void* target, const void* source, std::size_t size_bytes, int pe,
         Stream stream) {
  if (size_bytes == 0)
    return;
  std::byte* const there = job.address(target, pe);
  if (there != nullptr && size_bytes >= copy_engine_bytes) {
    require_success(
        cudaMemcpyAsync(there, source, size_bytes, cudaMemcpyDefault, stream_of(stream)), "put");
    return;
  }
  launch(transfer, 1, copy_threads, stream, "launch of a put", job.device(), Transfer::put, target,
         source, size_bytes, SignalOf{}, pe);
}

void get(const Job& job, void* target, const void* source, std::size_t size_bytes, int pe,
         Stream stream) {
  if (size_bytes == 0)
    return;
  const std::byte* const there = job.address(source, pe);
  if (there != nullptr && size_bytes >= copy_engine_bytes) {
    require_success(
        cudaMemcpyAsync(target, there, size_bytes, cudaMemcpyDefault, stream_of(stream)), "get");
    return;
  }
  launch(transfer, 1, copy_threads, stream, "launch of a get", job.device(), Transfer::get, target,
         source, size_bytes, SignalOf{}, pe);
}

void put_signal(const Job& job, void* target, const void* source, std::size_t size_bytes,
                std::uint64_t* word, std::uint64_t value, device::SignalOp op, int pe,
                Stream stream) {
  if (job.address(target, pe) != nullptr && size_bytes >= copy_engine_bytes) {
    put(job, target, source, size_bytes, pe, stream);
    signal(job, word, value, op, pe, stream);
    return;
  }
  launch(transfer, 1, copy_threads, stream, "launch of a put with a signal", job.device(),
         Transfer::put_signal, target, source, size_bytes, SignalOf{word, value, op}, pe);
}

void signal(const Job& job, std::uint64_t* word, std::uint64_t value, device::SignalOp op, int pe,
            Stream stream) {
  launch(order, 1, 32, stream, "launch of a signal", job.device(), Ordering::signal,
         SignalOf{word, value, op}, pe, 0);
}

void wait_until(const Job& job, const std::uint64_t* word, device::Compare compare,
                std::uint64_t value, int peer, Stream stream) {
  launch(wait_for_word, 1, 1, stream, "launch of a wait", job.device(), word, compare, value, peer);
}

void quiet(const Job& job, Stream stream) {
  launch(order, 1, 32, stream, "launch of a quiet", job.device(), Ordering::quiet, SignalOf{}, 0,
         0);
}

void barrier(const Job& job, int team, Stream stream) {
  launch(order, 1, 32, stream, "launch of a barrier", job.device(), Ordering::barrier, SignalOf{},
         0, team);
}

void sync(const Job& job, int team, Stream stream) {
  launch(order, 1, 32, stream, "launch of a sync", job.device(), Ordering::sync, SignalOf{}, 0,
         team);
}

void broadcast(const Job& job, int team, void* dest, const void* source, std::size_t size_bytes,
               int root, Stream stream) {
  launch_moving(job, Moving::broadcast, team, dest, source, size_bytes, root, stream);
}
void fcollect(const Job& job, int team, void* dest, const void* source, std::size_t size_bytes,
              Stream stream) {
  launch_moving(job, Moving::fcollect, team, dest, source, size_bytes, 0, stream);
}
void alltoall(const Job& job, int team, void* dest, const void* source, std::size_t size_bytes,
              Stream stream) {
  launch_moving(job, Moving::alltoall, team, dest, source, size_bytes, 0, stream);
}
void alltoallv(const Job& job, int team, void* dest, const void* source, const ExchangeLists& lists,
               Stream stream) {
  // The host does not know the sizes: as many blocks as large ones would get.
  launch(exchange_in_team, most_blocks, block_threads, stream, "launch of a collective",
         job.device(), team, dest, source, lists);
}

} // namespace shmemctl::on_stream
