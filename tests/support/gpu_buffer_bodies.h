// What PEs do with registered buffers of GPU memory in tests, over a fake driver and a real one.
#pragma once

#include <functional>

#include "src/base/error.h"
#include "tests/support/exchange_buffers.h"
#include "tests/support/gpu_bodies.h"
#include "tests/support/gpu_user_memory.h"
#include "tests/unit/runtime/buffers/buffer_memory.h"

namespace shmemctl::test {

struct GpuBufferCase {
  std::string driver_file;
  std::string memory; ///< as for user_memory()
  /// What a kernel of this PE does: copies by loads and stores; done on return.
  std::function<void(Runtime&, std::byte* to, const std::byte* from, std::size_t size_bytes)>
      kernel_copy;
};

/// Sizes and offsets that no unit of copies divides.
struct Stretch {
  std::size_t offset_bytes, size_bytes;
};
inline constexpr Stretch stretches[] = {{0, 1},       {3, 7},          {17, 16},
                                        {4095, 4097}, {65537, 100003}, {1 << 20, (3 << 20) + 5}};
/// From the allocation's begin to the buffer, and what there is of it.
inline constexpr std::size_t odd_gap_bytes = 13, odd_size_bytes = (4 << 20) + 4099;

inline void expect_pattern(PeGpu& gpu, const std::byte* at, std::size_t size_bytes, unsigned seed,
                           const std::string& what) {
  std::vector<std::byte> bytes(size_bytes);
  gpu.copy(bytes.data(), at, size_bytes);
  const std::size_t wrong = first_wrong(bytes.data(), size_bytes, seed);
  expect(wrong == size_bytes,
         what + ", byte " + std::to_string(wrong) + " of " + std::to_string(size_bytes));
}
inline void store_pattern(PeGpu& gpu, std::byte* at, std::size_t size_bytes, unsigned seed) {
  gpu.copy(at, patterned(size_bytes, seed).data(), size_bytes);
}

/// How bytes get to another PE's buffer and back.
struct BufferMeans {
  const char* name;
  std::function<void(const BufferDescriptor&, const Stretch&, unsigned seed)> put;
  std::function<void(const BufferDescriptor&, const Stretch&, unsigned seed)> check;
};

/// By the host from its memory, by the host from a GPU's memory, by a stream, by a kernel.
inline std::vector<BufferMeans> all_means(Runtime& runtime, const GpuBufferCase& the_case,
                                          std::byte* scratch) {
  Buffers& buffers = runtime.buffers();
  PeGpu& gpu = *runtime.gpu();
  const auto in_scratch = [&gpu, scratch](const Stretch& each, unsigned seed) {
    expect_pattern(gpu, scratch + 5, each.size_bytes, seed, "what was got");
    gpu.fill(scratch, 0, each.size_bytes + 5);
  };
  return {
      {"host memory",
       [&](const BufferDescriptor& to, const Stretch& each, unsigned seed) {
         const auto sent = patterned(each.size_bytes, seed);
         buffers.put(to, each.offset_bytes, sent.data(), sent.size());
       },
       [&](const BufferDescriptor& from, const Stretch& each, unsigned seed) {
         std::vector<std::byte> got(each.size_bytes);
         buffers.get(got.data(), from, each.offset_bytes, got.size());
         expect(first_wrong(got.data(), got.size(), seed) == got.size(), "what was got");
       }},
      {"GPU memory",
       [&, scratch](const BufferDescriptor& to, const Stretch& each, unsigned seed) {
         store_pattern(gpu, scratch + 5, each.size_bytes, seed);
         buffers.put(to, each.offset_bytes, scratch + 5, each.size_bytes);
       },
       [&, scratch, in_scratch](const BufferDescriptor& from, const Stretch& each, unsigned seed) {
         buffers.get(scratch + 5, from, each.offset_bytes, each.size_bytes);
         in_scratch(each, seed);
       }},
      {"a stream",
       [&, scratch](const BufferDescriptor& to, const Stretch& each, unsigned seed) {
         store_pattern(gpu, scratch + 5, each.size_bytes, seed);
         const BufferRef held = buffers.hold(to);
         held.put_on_stream(each.offset_bytes, scratch + 5, each.size_bytes, gpu.stream());
         gpu.wait(gpu.stream(), "a copy");
       },
       [&, scratch, in_scratch](const BufferDescriptor& from, const Stretch& each, unsigned seed) {
         const BufferRef held = buffers.hold(from);
         held.get_on_stream(scratch + 5, each.offset_bytes, each.size_bytes, gpu.stream());
         gpu.wait(gpu.stream(), "a copy");
         in_scratch(each, seed);
       }},
      {"a kernel",
       [&, scratch](const BufferDescriptor& to, const Stretch& each, unsigned seed) {
         store_pattern(gpu, scratch + 5, each.size_bytes, seed);
         const BufferRef held = buffers.hold(to);
         the_case.kernel_copy(runtime, held.address() + each.offset_bytes, scratch + 5,
                              each.size_bytes);
       },
       [&, scratch, in_scratch](const BufferDescriptor& from, const Stretch& each, unsigned seed) {
         const BufferRef held = buffers.hold(from);
         the_case.kernel_copy(runtime, scratch + 5, held.address() + each.offset_bytes,
                              each.size_bytes);
         in_scratch(each, seed);
       }},
  };
}

/// Each PE writes into the next one's buffer and reads it back, by all means that there are: two
/// PEs do so in both directions at the same time.
/// @param mapped whether kernels and streams reach it, too
inline std::string put_and_get_buffers(Runtime& runtime, const GpuBufferCase& the_case,
                                       bool mapped = true) {
  PeGpu& gpu = *runtime.gpu();
  const auto device = open_device(the_case.driver_file, gpu.info().device);
  const auto memory = user_memory(the_case.memory, device);
  const MallocMemory scratch(device, odd_size_bytes + 16);
  gpu.fill(memory->data(), 0x77, odd_gap_bytes + odd_size_bytes + 1);
  Buffers& buffers = runtime.buffers();
  const BufferHandle handle = buffers.add(memory->data() + odd_gap_bytes, odd_size_bytes);
  const auto all = exchange(runtime, buffers.describe(handle));
  const auto n = static_cast<unsigned>(all.size());
  const auto me = static_cast<unsigned>(runtime.pe());
  const unsigned next = (me + 1) % n, before = (me + n - 1) % n;
  unsigned seed = 1;
  std::vector<BufferMeans> means = all_means(runtime, the_case, scratch.data());
  if (!mapped)
    means.resize(2);
  for (const BufferMeans& mean : means)
    for (const Stretch& each : stretches) {
      mean.put(all[next], each, 10 * ++seed + me);
      runtime.collectives().barrier(team_world);
      expect_pattern(gpu, memory->data() + odd_gap_bytes + each.offset_bytes, each.size_bytes,
                     10 * seed + before, std::string("a put from ") + mean.name);
      mean.check(all[next], each, 10 * seed + me);
      runtime.collectives().barrier(team_world);
    }
  std::byte edges[2];
  gpu.copy(edges, memory->data() + odd_gap_bytes - 1, 1);
  gpu.copy(edges + 1, memory->data() + odd_gap_bytes + odd_size_bytes, 1);
  expect(edges[0] == std::byte{0x77} && edges[1] == std::byte{0x77}, "what is around the buffer");
  const std::string way = std::string(to_string(buffers.path_to(all[next]).kind)) + ": " +
                          buffers.path_to(all[next]).reason;
  runtime.collectives().barrier(team_world);
  buffers.remove(handle);
  runtime.collectives().barrier(team_world);
  return way;
}

/// Registers, lets others write, and unregisters; the memory is freed and made anew each time.
/// @param used how much of the device's memory is in use, or any measure of it
inline std::string register_many_times(Runtime& runtime, const GpuBufferCase& the_case, int rounds,
                                       const std::function<std::string()>& used) {
  PeGpu& gpu = *runtime.gpu();
  Buffers& buffers = runtime.buffers();
  const auto device = open_device(the_case.driver_file, gpu.info().device);
  std::string at_start;
  for (int round = 0; round < rounds; ++round) {
    auto memory = user_memory(the_case.memory, device);
    const BufferHandle handle = buffers.add(memory->data() + odd_gap_bytes, odd_size_bytes);
    const auto all = exchange(runtime, buffers.describe(handle));
    const auto me = static_cast<std::size_t>(runtime.pe());
    const auto n = all.size();
    const auto seed = static_cast<unsigned>(round);
    const auto sent = patterned(1001, seed + static_cast<unsigned>(me));
    buffers.put(all[(me + 1) % n], 77, sent.data(), sent.size());
    runtime.collectives().barrier(team_world);
    expect_pattern(gpu, memory->data() + odd_gap_bytes + 77, 1001,
                   seed + static_cast<unsigned>((me + n - 1) % n),
                   "round " + std::to_string(round));
    buffers.remove(handle);
    memory.reset();
    runtime.collectives().barrier(team_world);
    if (round == 0)
      at_start = used(); // the streams and tables of the first one stay
    runtime.collectives().barrier(team_world);
  }
  expect(used() == at_start, "memory as it was: " + used() + ", it was " + at_start);
  return at_start;
}

} // namespace shmemctl::test
