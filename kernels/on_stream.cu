#include "kernels/on_stream.h"

#include "kernels/on_stream_launch.h"

namespace shmemctl::on_stream {

namespace {

Kernels kernels_for(const Job& job) {
  return all_mapped(job.device()) ? mapped::kernels() : with_network::kernels();
}

void launch_moving(const Job& job, Moving moving, int team, void* dest, const void* source,
                   std::size_t size_bytes, int root, Stream stream) {
  const std::size_t members = static_cast<std::size_t>(job.device().n_pes);
  const int blocks = plan::is_small(size_bytes, static_cast<int>(members))
                         ? 1
                         : blocks_for(size_bytes * members, std::size_t{16} << 10);
  launch(kernels_for(job).move_in_team, blocks, block_threads, stream, "launch a collective",
         job.device(), moving, team, dest, source, size_bytes, root);
}

} // namespace

Job::Job(const DeviceJob& device)
    : device_(device), heap_delta_bytes_(static_cast<std::size_t>(device.n_pes)) {
  require_success(cudaMemcpyAsync(heap_delta_bytes_.data(), device.heap_delta_bytes,
                                  heap_delta_bytes_.size() * sizeof(std::int64_t),
                                  cudaMemcpyDefault, cudaStreamPerThread),
                  "read the peers' heap addresses");
  require_success(cudaStreamSynchronize(cudaStreamPerThread), "read the peers' heap addresses");
  cudaPointerAttributes heap{};
  require_success(cudaPointerGetAttributes(&heap, device.heap),
                  "query whether the heap is GPU memory");
  heap_on_host_ = heap.type != cudaMemoryTypeDevice;
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
  if (job.by_copy_engine(there)) {
    require_success(
        cudaMemcpyAsync(there, source, size_bytes, cudaMemcpyDefault, stream_of(stream)), "copy");
    return;
  }
  launch(kernels_for(job).transfer, 1, copy_threads, stream, "launch a put", job.device(),
         Transfer::put, target, source, size_bytes, SignalOf{}, pe);
}

void get(const Job& job, void* target, const void* source, std::size_t size_bytes, int pe,
         Stream stream) {
  if (size_bytes == 0)
    return;
  const std::byte* const there = job.address(source, pe);
  if (job.by_copy_engine(there)) {
    require_success(
        cudaMemcpyAsync(target, there, size_bytes, cudaMemcpyDefault, stream_of(stream)), "copy");
    return;
  }
  launch(kernels_for(job).transfer, 1, copy_threads, stream, "launch a get", job.device(),
         Transfer::get, target, source, size_bytes, SignalOf{}, pe);
}

void put_signal(const Job& job, void* target, const void* source, std::size_t size_bytes,
                std::uint64_t* word, std::uint64_t value, device::SignalOp op, int pe,
                Stream stream) {
  if (size_bytes >= put_signal_copy_bytes && job.by_copy_engine(job.address(target, pe))) {
    put(job, target, source, size_bytes, pe, stream);
    signal(job, word, value, op, pe, stream);
    return;
  }
  launch(kernels_for(job).transfer, 1, copy_threads, stream, "launch a put with a signal",
         job.device(), Transfer::put_signal, target, source, size_bytes, SignalOf{word, value, op},
         pe);
}

void signal(const Job& job, std::uint64_t* word, std::uint64_t value, device::SignalOp op, int pe,
            Stream stream) {
  launch(kernels_for(job).order, 1, 32, stream, "launch a signal", job.device(), Ordering::signal,
         SignalOf{word, value, op}, pe, 0);
}

void wait_until(const Job& job, const std::uint64_t* word, device::Compare compare,
                std::uint64_t value, int peer, Stream stream) {
  launch(kernels_for(job).wait_for_word, 1, 1, stream, "launch a wait", job.device(), word, compare,
         value, peer);
}

void quiet(const Job& job, Stream stream) {
  // Copies and kernels of the stream have made their stores visible to all when they are complete.
  if (all_mapped(job.device()))
    return;
  launch(kernels_for(job).order, 1, 32, stream, "launch a quiet", job.device(), Ordering::quiet,
         SignalOf{}, 0, 0);
}

void barrier(const Job& job, int team, Stream stream) {
  launch(kernels_for(job).order, 1, 32, stream, "launch a barrier", job.device(), Ordering::barrier,
         SignalOf{}, 0, team);
}

void sync(const Job& job, int team, Stream stream) {
  launch(kernels_for(job).order, 1, 32, stream, "launch a sync", job.device(), Ordering::sync,
         SignalOf{}, 0, team);
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
  // The host does not know the sizes: launch as many blocks as for large ones.
  launch(kernels_for(job).exchange_in_team, max_blocks, block_threads, stream,
         "launch a collective", job.device(), team, dest, source, lists);
}

} // namespace shmemctl::on_stream
