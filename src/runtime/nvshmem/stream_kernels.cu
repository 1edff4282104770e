#include "src/runtime/nvshmem/stream_kernels.h"

#include "kernels/on_stream_launch.h"
#include "kernels/shmem_device.cuh"
#include "kernels/stream_wait.cuh"

namespace shmemctl::nvshmem {

namespace {

constexpr int strided_threads = 256;
constexpr std::size_t elements_per_block = 1024;

template <class T>
__global__ void store_value(const __grid_constant__ DeviceJob job, T* target, T value, int pe) {
  on_stream::wait_for_stream();
  device::put_value(job, target, value, pe);
}

/// The elements that this block moves.
struct Part {
  std::size_t first, count;
};
__device__ Part part_of(std::size_t count) {
  const std::size_t each = (count + gridDim.x - 1) / gridDim.x;
  const std::size_t first = each * blockIdx.x;
  return {first, first >= count ? 0 : first + each > count ? count - first : each};
}

template <class T>
__global__ void __launch_bounds__(strided_threads)
    move_strided(const __grid_constant__ DeviceJob job, bool is_put, Strided elements, int pe) {
  on_stream::wait_for_stream();
  const Part part = part_of(elements.count);
  const auto skipped = static_cast<std::ptrdiff_t>(part.first);
  T* const target = static_cast<T*>(elements.target) + skipped * elements.target_stride;
  const T* const source = static_cast<const T*>(elements.source) + skipped * elements.source_stride;
  if (!is_put) {
    device::iget<device::Block>(job, target, source, elements.target_stride, elements.source_stride,
                                part.count, pe);
    return;
  }
  device::iput<device::Block>(job, target, source, elements.target_stride, elements.source_stride,
                              part.count, pe);
  if (!job.all_mapped) // after the quiet the source has been read
    device::quiet<device::Block>(job);
}

template <class T>
__device__ T load(const T* at) {
  if constexpr (sizeof(T) == 2) {
    const T value = *static_cast<const volatile T*>(at);
    __threadfence_system(); // acquire: later loads see what was written before the word
    return value;
  } else {
    return device::detail::load_word(at);
  }
}

/// Launched with one warp.
template <class T>
__global__ void wait_for_words(const __grid_constant__ DeviceJob job, WordsToAwait words) {
  on_stream::wait_for_stream();
  const T* const at = static_cast<const T*>(words.at);
  const T* const values = static_cast<const T*>(words.values);
  for (std::size_t i = threadIdx.x; i < words.count; i += blockDim.x) {
    if (words.status != nullptr && words.status[i] != 0)
      continue;
    const T wanted = values != nullptr ? values[i] : static_cast<T>(words.value);
    T seen{};
    const auto poll = [&] {
      seen = load(at + i);
      return compares(words.compare, seen, wanted);
    };
    if (!device::poll_until(job, poll))
      device::report_wait(job, -1, static_cast<std::uint64_t>(wanted),
                          static_cast<std::uint64_t>(seen), at + i);
  }
}

template <class T>
void store(const on_stream::Job& job, void* target, std::uint64_t bits, int pe,
           on_stream::Stream stream) {
  on_stream::launch(store_value<T>, 1, 1, stream, "put a value", job.device(),
                    static_cast<T*>(target), static_cast<T>(bits), pe);
}

void move(const on_stream::Job& job, bool is_put, const Strided& elements, int pe,
          on_stream::Stream stream) {
  if (elements.count == 0)
    return;
  const int blocks = on_stream::blocks_for(elements.count, elements_per_block);
  const auto run = [&](auto* kernel) {
    on_stream::launch(kernel, blocks, strided_threads, stream, is_put ? "iput" : "iget",
                      job.device(), is_put, elements, pe);
  };
  switch (elements.element_bytes) {
  case 1:
    return run(move_strided<std::uint8_t>);
  case 2:
    return run(move_strided<std::uint16_t>);
  case 4:
    return run(move_strided<std::uint32_t>);
  case 8:
    return run(move_strided<std::uint64_t>);
  default:
    return run(move_strided<int4>);
  }
}

} // namespace

void put_value(const on_stream::Job& job, void* target, std::uint64_t bits, std::size_t size_bytes,
               int pe, on_stream::Stream stream) {
  switch (size_bytes) {
  case 1:
    return store<std::uint8_t>(job, target, bits, pe, stream);
  case 2:
    return store<std::uint16_t>(job, target, bits, pe, stream);
  case 4:
    return store<std::uint32_t>(job, target, bits, pe, stream);
  default:
    return store<std::uint64_t>(job, target, bits, pe, stream);
  }
}

void iput(const on_stream::Job& job, const Strided& elements, int pe, on_stream::Stream stream) {
  move(job, true, elements, pe, stream);
}

void iget(const on_stream::Job& job, const Strided& elements, int pe, on_stream::Stream stream) {
  move(job, false, elements, pe, stream);
}

void wait_until_all(const on_stream::Job& job, const WordsToAwait& words,
                    on_stream::Stream stream) {
  if (words.count == 0)
    return;
  const auto run = [&](auto* kernel) {
    on_stream::launch(kernel, 1, 32, stream, "wait for words", job.device(), words);
  };
  switch (words.type) {
  case WordType::int16:
    return run(wait_for_words<std::int16_t>);
  case WordType::int32:
    return run(wait_for_words<std::int32_t>);
  case WordType::int64:
    return run(wait_for_words<std::int64_t>);
  case WordType::uint16:
    return run(wait_for_words<std::uint16_t>);
  case WordType::uint32:
    return run(wait_for_words<std::uint32_t>);
  case WordType::uint64:
    return run(wait_for_words<std::uint64_t>);
  }
}

} // namespace shmemctl::nvshmem
