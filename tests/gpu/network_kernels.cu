#include "tests/gpu/network_kernels.h"

#include "kernels/shmem_device.cuh"
#include "tests/support/rma_program.cuh"

namespace shmemctl::test {

namespace {

using namespace shmemctl::device;

__device__ NetworkAddress heap_address(std::uint64_t offset_bytes) {
  return {region::gpu_heap, offset_bytes};
}

/// Counts what is not as expected.
class Expect {
public:
  explicit __device__ Expect(NetworkFindings* findings) : findings_(findings) {}
  /// @param number of the expectation
  __device__ bool operator()(int number, bool met) const {
    if (!met)
      atomicAdd(&findings_->wrong[number], 1u);
    return met;
  }

private:
  NetworkFindings* findings_;
};

__device__ unsigned char byte_of(std::uint64_t round, unsigned thread, unsigned i) {
  return static_cast<unsigned char>(round * 31 + thread * 7 + i);
}

__device__ void fill(std::byte* at, unsigned count, std::uint64_t round, unsigned thread) {
  for (unsigned i = 0; i < count; ++i)
    at[i] = static_cast<std::byte>(byte_of(round, thread, i));
}
__device__ bool holds(const std::byte* at, unsigned count, std::uint64_t round, unsigned thread) {
  for (unsigned i = 0; i < count; ++i)
    if (static_cast<unsigned char>(at[i]) != byte_of(round, thread, i))
      return false;
  return true;
}

__global__ void every_operation(DeviceJob job, int peer, std::uint64_t rounds, std::byte* away,
                                NetworkFindings* findings) {
  constexpr unsigned count = 200;
  const Expect expect(findings);
  const unsigned thread = threadIdx.x + blockIdx.x * blockDim.x;
  const std::uint64_t there = NetworkHeap::slots + thread * NetworkHeap::slot_bytes;
  std::byte* const local = job.heap + NetworkHeap::local + thread * NetworkHeap::slot_bytes;
  std::byte* const mine = away + thread * NetworkHeap::slot_bytes;
  std::uint64_t old = 0;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    const bool blocking = round % 2 == 0;
    fill(local, count, round, thread);
    fill(mine, count, round + 1, thread);
    // From the heap, and from memory of the GPU.
    if (!expect(0, network_put(job, heap_address(there), local, count, peer, blocking)) ||
        !expect(1, network_put(job, heap_address(there + 256), mine, count, peer, blocking)) ||
        !expect(2, network_put_value(job, heap_address(there + 512), round, 8, peer)) ||
        !expect(3, network_quiet(job)))
      return;
    if (!expect(4, network_get_value(job, heap_address(there + 512), 8, peer, old)))
      return;
    expect(5, old == round);
    fill(local, count, 0, thread);
    fill(mine, count, 0, thread);
    if (!expect(6, network_get(job, local, heap_address(there), count, peer, blocking)) ||
        !expect(7, network_get(job, mine, heap_address(there + 256), count, peer, blocking)) ||
        !expect(8, blocking || network_quiet(job)))
      return;
    expect(9, holds(local, count, round, thread));
    expect(10, holds(mine, count, round + 1, thread));
    if (!expect(11, network_atomic(job, heap_address(there + 520), NetworkAtomic::add, 8, 2, 0,
                                   peer, &old)))
      return;
    expect(12, old == (round - 1) * 2);
    if (!expect(13, network_atomic(job, heap_address(there + 528), NetworkAtomic::add, 4, 3, 0,
                                   peer, &old)))
      return;
    expect(14, old == (round - 1) * 3);
    if (!expect(15, network_atomic(job, heap_address(there + 536), NetworkAtomic::compare_swap, 8,
                                   round, round - 1, peer, &old)))
      return;
    expect(16, old == round - 1);
    if (!expect(17, network_atomic(job, heap_address(NetworkHeap::counter), NetworkAtomic::add, 8,
                                   1, 0, peer, nullptr)) ||
        !expect(18, network_fence(job)))
      return;
  }
  expect(19, network_quiet(job));
}

__global__ void signals(DeviceJob job, int peer, std::uint64_t rounds, NetworkFindings* findings) {
  const Expect expect(findings);
  std::byte* const local = job.heap + NetworkHeap::local;
  const auto* const signal = reinterpret_cast<const std::uint64_t*>(job.heap + NetworkHeap::signal);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    fill(local, NetworkHeap::payload_bytes, round, static_cast<unsigned>(job.pe));
    // The signal is set and added to by turns: both leave the round's number.
    if (!expect(20,
                network_put_signal(job, heap_address(NetworkHeap::payload), local,
                                   NetworkHeap::payload_bytes, heap_address(NetworkHeap::signal),
                                   round % 2 == 0 ? round : 1, round % 2 != 0, peer, true)))
      return;
    const std::uint64_t begin_ns = global_time_ns();
    while (load_acquire(signal) < round)
      if (global_time_ns() - begin_ns > job.timeout_ns) {
        expect(21, false);
        return;
      }
    expect(22, holds(job.heap + NetworkHeap::payload, NetworkHeap::payload_bytes, round,
                     static_cast<unsigned>(peer)));
    // The payload may be written again when both have looked.
    if (!expect(23, network_put_value(job, heap_address(NetworkHeap::signal + 8), round, 8, peer)))
      return;
    while (load_acquire(signal + 1) < round)
      if (global_time_ns() - begin_ns > job.timeout_ns) {
        expect(21, false);
        return;
      }
  }
}

__global__ void __launch_bounds__(128)
    rma_program(const __grid_constant__ DeviceJob job, const RmaStep* steps, int count,
                NetworkFindings* findings) {
  Expect{findings}(28, run_program<Block>(job, steps, count));
}

__global__ void sum(const __grid_constant__ DeviceJob job, std::size_t count,
                    NetworkFindings* findings) {
  const bool ok = reduce_grid(
      job, team_world, reinterpret_cast<std::int32_t*>(job.heap + NetworkHeap::results),
      reinterpret_cast<std::int32_t*>(job.heap + NetworkHeap::numbers), count, ReduceOp::sum);
  Expect{findings}(21, ok);
}

__global__ void reduce_parts(const __grid_constant__ DeviceJob job, std::size_t count,
                             NetworkFindings* findings) {
  const bool ok = reducescatter_grid(
      job, team_world, reinterpret_cast<std::int64_t*>(job.heap + NetworkHeap::results),
      reinterpret_cast<std::int64_t*>(job.heap + NetworkHeap::numbers), count, ReduceOp::max);
  Expect{findings}(21, ok);
}
__global__ void exchange(const __grid_constant__ DeviceJob job, std::size_t count,
                         NetworkFindings* findings) {
  const bool ok = alltoall_grid(job, team_world, job.heap + NetworkHeap::results + 8 * count,
                                job.heap + NetworkHeap::numbers, 8 * count);
  Expect{findings}(21, ok);
}

__global__ void build_wqes(DeviceJob job, int peer, std::uint64_t each, NetworkRate* rate,
                           NetworkFindings* findings) {
  const Expect expect(findings);
  const std::uint64_t thread = threadIdx.x + blockIdx.x * static_cast<std::uint64_t>(blockDim.x);
  const std::uint64_t threads = gridDim.x * static_cast<std::uint64_t>(blockDim.x);
  const NetworkAddress there = heap_address(NetworkHeap::slots + thread * sizeof(std::uint64_t));
  const std::uint64_t deadline_ns = global_time_ns() + job.timeout_ns;
  atomic_word_add(&rate->arrived, std::uint64_t{1});
  while (load_relaxed(&rate->arrived) < threads)
    if (!expect(24, global_time_ns() < deadline_ns))
      return;
  const std::uint64_t begin_ns = global_time_ns();
  const long long begin = clock64();
  for (std::uint64_t value = 1; value <= each; ++value)
    if (!expect(25, network_put_value(job, there, value, 8, peer)))
      return;
  if (thread == 0)
    rate->cycles = static_cast<std::uint64_t>(clock64() - begin);
  // The time of the thread that comes last.
  if (atomic_word_add(&rate->done, std::uint64_t{1}) + 1 == threads) {
    rate->ns = global_time_ns() - begin_ns;
    expect(26, network_quiet(job));
  }
}

/// GpuMemory with a clock around each step.
struct TimedMemory : GpuMemory {
  using Parts = NetworkEntryParts;
  /// In shared memory, where fences do not matter.
  static __device__ Parts* parts() {
    __shared__ Parts all;
    return &all;
  }
  /// Forces a loaded value to have arrived.
  static __device__ void use(std::uint64_t value) {
    asm volatile("{\n\t.reg .pred never;\n\tsetp.eq.u64 never, %0, 0x7fedcba987654321;\n\t"
                 "@never trap;\n\t}" ::"l"(value)
                 : "memory");
  }
  template <class Step>
  static __device__ auto timed(Parts::Part part, const Step& step) -> decltype(step()) {
    const long long begin = clock64();
    const auto value = step();
    use(static_cast<std::uint64_t>(value));
    parts()->cycles[part] += static_cast<std::uint64_t>(clock64() - begin);
    ++parts()->times[part];
    return value;
  }
  template <class Step>
  static __device__ void timed_alone(Parts::Part part, const Step& step) {
    timed(part, [&] {
      step();
      return 0;
    });
  }

  static __device__ std::uint64_t load(const std::uint64_t* word) {
    return timed(Parts::load, [&] { return GpuMemory::load(word); });
  }
  static __device__ std::uint64_t load_turn(const std::uint64_t* word) { return load(word); }
  static __device__ std::uint64_t load_acquire(const std::uint64_t* word) {
    return timed(Parts::acquire, [&] { return GpuMemory::load_acquire(word); });
  }
  static __device__ void store(std::uint64_t* word, std::uint64_t value) {
    timed_alone(Parts::store, [&] { GpuMemory::store(word, value); });
  }
  static __device__ void store_plain(std::uint64_t* word, std::uint64_t value) {
    timed_alone(Parts::store, [&] { GpuMemory::store_plain(word, value); });
  }
  static __device__ void store_release(std::uint64_t* word, std::uint64_t value) {
    timed_alone(Parts::release, [&] { GpuMemory::store_release(word, value); });
  }
  static __device__ std::uint64_t fetch_add(std::uint64_t* word, std::uint64_t value) {
    return timed(Parts::read_modify_write, [&] { return GpuMemory::fetch_add(word, value); });
  }
  static __device__ bool compare_exchange_acquire(std::uint64_t* word, std::uint64_t expected,
                                                  std::uint64_t desired) {
    return timed(Parts::read_modify_write,
                 [&] { return GpuMemory::compare_exchange_acquire(word, expected, desired); });
  }
  static __device__ void pass_turn(std::uint64_t* word, std::uint64_t from, std::uint64_t to) {
    timed_alone(Parts::read_modify_write, [&] { GpuMemory::pass_turn(word, from, to); });
  }
  static __device__ void wqes_written() {
    timed_alone(Parts::fence, [] { GpuMemory::wqes_written(); });
  }
  static __device__ void store_record(std::uint32_t* record, std::uint32_t value) {
    timed_alone(Parts::record, [&] { GpuMemory::store_record(record, value); });
  }
  static __device__ void store_doorbell(std::uint64_t* doorbell, std::uint64_t value,
                                        std::uint32_t write_combining) {
    timed_alone(Parts::doorbell,
                [&] { GpuMemory::store_doorbell(doorbell, value, write_combining); });
  }
};

__global__ void time_entry_parts(DeviceJob job, int peer, std::uint64_t each,
                                 NetworkEntryParts* parts, NetworkFindings* findings) {
  const Expect expect(findings);
  NetworkEntryParts* const mine = TimedMemory::parts();
  *mine = {};
  const auto place = detail::qp_address_of(heap_address(NetworkHeap::slots));
  const auto to = static_cast<std::uint32_t>(peer);
  const long long empty = clock64();
  mine->clock = static_cast<std::uint64_t>(clock64() - empty);
  const long long begin = clock64();
  for (std::uint64_t value = 1; value <= each; ++value) {
    detail::NetworkWait wait(job);
    QpClient<TimedMemory, detail::NetworkWait> queue(
        job.network, to, qp_of(job.network, to, detail::qp_caller(job)), 0, wait);
    if (!expect(27, queue.put_value(place, value, 8)))
      return;
  }
  mine->whole = static_cast<std::uint64_t>(clock64() - begin);
  expect(27, network_quiet(job));
  *parts = *mine;
}

} // namespace

void launch_network_entry_parts(cudaStream_t stream, const DeviceJob& job, int peer,
                                std::uint64_t each, NetworkEntryParts* parts,
                                NetworkFindings* findings) {
  time_entry_parts<<<1, 1, 0, stream>>>(job, peer, each, parts, findings);
}

void launch_network_program(cudaStream_t stream, const DeviceJob& job, const RmaStep* steps,
                            int count, NetworkFindings* findings) {
  rma_program<<<1, 64, 0, stream>>>(job, steps, count, findings);
}

void launch_network_sum(cudaStream_t stream, const DeviceJob& job, int blocks, std::size_t count,
                        NetworkFindings* findings) {
  sum<<<blocks, 128, 0, stream>>>(job, count, findings);
}
void launch_network_parts(cudaStream_t stream, const DeviceJob& job, int blocks, std::size_t count,
                          NetworkFindings* findings) {
  reduce_parts<<<blocks, 128, 0, stream>>>(job, count, findings);
  exchange<<<blocks, 128, 0, stream>>>(job, count, findings);
}

void launch_network_operations(cudaStream_t stream, const DeviceJob& job, int peer,
                               std::uint64_t rounds, std::byte* away, NetworkFindings* findings) {
  every_operation<<<NetworkShape::blocks, NetworkShape::threads, 0, stream>>>(job, peer, rounds,
                                                                              away, findings);
}

void launch_network_signals(cudaStream_t stream, const DeviceJob& job, int peer,
                            std::uint64_t rounds, NetworkFindings* findings) {
  signals<<<1, 1, 0, stream>>>(job, peer, rounds, findings);
}

void launch_network_entries(cudaStream_t stream, const DeviceJob& job, int peer, int blocks,
                            int threads, std::uint64_t each, NetworkRate* rate,
                            NetworkFindings* findings) {
  build_wqes<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, stream>>>(
      job, peer, each, rate, findings);
}

} // namespace shmemctl::test
