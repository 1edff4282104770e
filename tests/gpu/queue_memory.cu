#include "tests/gpu/queue_memory.h"

#include "kernels/device/gpu_memory.cuh"
#include "src/abi/send_queue.h"

namespace shmemctl::test {

namespace {

using Queue = mlx5::SendQueue<mlx5::DeviceShape, device::GpuMemory>;

struct WaitTimeout {
  std::uint64_t until_ns;
  std::uint64_t* gave_up;

  /// Whether `ready` came in time.
  template <class Ready>
  __device__ bool await(const Ready& ready) const {
    while (!ready()) {
      if (device::global_time_ns() > until_ns)
        device::store_relaxed(gave_up, 1);
      if (device::load_relaxed(gave_up) != 0)
        return false;
    }
    return true;
  }
};

__device__ bool post(const Queue& queue, mlx5::DoorbellMode doorbell, const WaitTimeout& timeout) {
  std::uint64_t known = 0;
  const std::uint64_t start = queue.reserve(1);
  if (!timeout.await([&] { return queue.poll_for_room(start + 1, known); }))
    return false;
  for (unsigned word = 0; word < mlx5::wqebb_words; ++word)
    queue.set(start, word, queue_memory_word(start, word));
  queue.written();
  mlx5::PublishResult turn = mlx5::PublishResult::not_my_turn;
  return timeout.await([&] {
    turn = queue.try_publish(start, 1, {start + 1, start + 1}, doorbell);
    return turn != mlx5::PublishResult::not_my_turn;
  }) && (turn != mlx5::PublishResult::ring ||
         timeout.await([&] { return queue.try_ring(start + 1); }));
}

__global__ void write_here_ring_there(mlx5::QpView view, std::uint64_t rounds,
                                      std::uint64_t timeout_ns, std::uint64_t* gave_up) {
  const Queue queue(view);
  const WaitTimeout timeout{device::global_time_ns() + timeout_ns, gave_up};
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t mine = 2 * round + blockIdx.x;
    // Relaxed: nothing but what try_publish() does orders the other block's WQE before the ring.
    if (!timeout.await([&] { return device::GpuMemory::load(&view.words->ready) >> 1 == mine; }) ||
        !post(queue, blockIdx.x == 0 ? mlx5::DoorbellMode::later : mlx5::DoorbellMode::now,
              timeout) ||
        !timeout.await([&] {
          queue.poll();
          return queue.completed() >= 2 * round + 2;
        }))
      return;
  }
}

} // namespace

void launch_queue_memory(cudaStream_t stream, const mlx5::QpView& view, std::uint64_t rounds,
                         std::uint64_t timeout_ns, std::uint64_t* gave_up) {
  write_here_ring_there<<<2, 1, 0, stream>>>(view, rounds, timeout_ns, gave_up);
}

} // namespace shmemctl::test
