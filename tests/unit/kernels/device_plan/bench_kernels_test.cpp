// What benchmark kernels do, on threads of the host: that they move what they are timed for.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/bench/barrier.cuh"
#include "kernels/bench/collectives.cuh"
#include "kernels/bench/pingpong.cuh"
#include "kernels/bench/transfer.cuh"
#include "src/instruments/bench/cases/transfer_buffers.h"
#include "src/instruments/bench/gpu/collective_buffers.h"
#include "src/instruments/bench/gpu/wait_forward.cu"
#include "tests/unit/kernels/device_plan/bench_world.h"

namespace shmemctl::bench {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool under_thread_sanitizer = true;
#else
constexpr bool under_thread_sanitizer = false;
#endif
std::vector<std::size_t> transfer_sizes() {
  if (under_thread_sanitizer) // under ThreadSanitizer the test takes long
    return {100};
  return {1, 100, 4097};
}

struct TransferTest {
  Traffic traffic = Traffic::pair;
  Direction direction = Direction::uni;
  std::size_t size_bytes = 100;
  int window = 5;
  bool own_messages = false;
  Completion completion = Completion::at_end;
  HostShape shape = {2, 3};
  std::uint64_t quiet_every = 0;
};

template <class Body>
void expect_transfer(int n_pes, const TransferTest& how, bool pulls, std::uint64_t callers) {
  World world(n_pes);
  Point point;
  point.traffic = how.traffic;
  point.direction = how.direction;
  const std::size_t message = how.own_messages ? callers * how.size_bytes : how.size_bytes;
  const int peers = peers_of_a_sender(point, n_pes);
  const TransferLayout layout(message, peers, how.window * peers, 1);
  ASSERT_LE(layout.total_bytes(), heap_bytes);
  world.fill(source_bytes(message));
  std::uint64_t first = 0;
  for (const std::uint64_t count : counts) {
    world.run<Body>(how.shape, [&](int pe) {
      const Routes routes = routes_of(point, pe, n_pes);
      TransferArguments a{};
      a.completion = how.completion;
      a.first = first;
      a.count = count;
      a.memory = world.memory(pe);
      a.slots_offset_bytes = layout.slot_offset_bytes(0, 0);
      a.slot_bytes = layout.slot_bytes;
      a.slots = layout.slots;
      a.size_bytes = how.size_bytes;
      a.own_messages = how.own_messages;
      a.peers = routes.to.size();
      a.only_peer = routes.to.empty() ? -1 : routes.to[0];
      a.quiet_every = how.quiet_every;
      return a;
    });
    first += count;
  }
  for (int pe = 0; pe < n_pes; ++pe) {
    const Routes routes = routes_of(point, pe, n_pes);
    const std::vector<int>& writers = pulls ? routes.to : routes.from;
    for (std::size_t area = 0; area < writers.size(); ++area) {
      const std::size_t at = layout.slot_offset_bytes(area, 0);
      const PatternSlots slots{layout.slots, layout.slot_bytes, message, iterations,
                               seed,         writers[area]};
      EXPECT_EQ(world.wrong_at(pe, at, slots), UINT64_MAX) << "PE " << pe << ", area " << area;
      const std::size_t damaged = layout.slot_bytes + message / 2;
      if (layout.slots < 2)
        continue;
      world.memory(pe)[at + damaged] ^= std::byte{1};
      EXPECT_EQ(world.wrong_at(pe, at, slots), damaged);
      EXPECT_EQ(world.control(pe).expected ^ 1, world.control(pe).found);
    }
    EXPECT_GE(world.control(pe).end_ns, world.control(pe).begin_ns);
  }
}

template <class Operation>
void expect_transfers(bool pulls) {
  using OfGrid = TransferBody<Operation, OfBlock>;
  for (const std::size_t size : transfer_sizes()) {
    TransferTest how;
    how.size_bytes = size;
    expect_transfer<OfGrid>(2, how, pulls, 2);
    how.completion = Completion::each_message;
    expect_transfer<OfGrid>(2, how, pulls, 2);
    how.completion = Completion::at_end;
    how.direction = Direction::bi;
    expect_transfer<TransferBody<Operation, OfThread>>(2, how, pulls, 6);
    how.traffic = Traffic::all_to_all;
    how.quiet_every = 5;
    expect_transfer<OfGrid>(3, how, pulls, 2);
    how.shape = {3, 1}; // more blocks than peers, not a multiple of them
    expect_transfer<OfGrid>(3, how, pulls, 3);
    how.shape = {1, 2}; // fewer
    expect_transfer<OfGrid>(4, how, pulls, 1);
  }
}

TEST(BenchKernels, PutsLeaveTheirMessages) {
  expect_transfers<Put>(false);
}
TEST(BenchKernels, GetsBringTheirMessages) {
  expect_transfers<Get>(true);
}
TEST(BenchKernels, StoresLeaveTheirMessages) {
  expect_transfers<Store>(false);
}

TEST(BenchKernels, EachCallersMessagesLieSideBySide) {
  TransferTest how;
  how.own_messages = true;
  for (const std::size_t size : {1u, 8u, 100u}) {
    how.size_bytes = size;
    expect_transfer<TransferBody<Put, OfThread>>(2, how, false, 6);
    expect_transfer<TransferBody<Put, OfBlock>>(2, how, false, 2);
  }
}

TEST(BenchKernels, LatencyIsOfWholeOperations) {
  TransferTest how;
  how.window = 1;
  for (const std::size_t size : {1u, 8u, 4097u}) {
    how.size_bytes = size;
    how.shape = {1, 3};
    expect_transfer<LatencyBody<Put, OfBlock>>(2, how, false, 1);
    expect_transfer<LatencyBody<Get, OfBlock>>(2, how, true, 1);
    how.shape = {1, 1};
    expect_transfer<LatencyBody<Store, OfThread>>(2, how, false, 1);
    if (size > 8)
      continue;
    expect_transfer<LatencyBody<PutValue, OfThread>>(2, how, false, 1);
    expect_transfer<LatencyBody<GetValue, OfThread>>(2, how, true, 1);
  }
}

TEST(BenchKernels, PutsWithSignalLeaveTheLastOfBoth) {
  for (const std::size_t size : {1u, 8u, 4097u}) {
    World world(2);
    const TransferLayout layout(size, 1, 1, 1);
    const std::size_t signal = layout.total_bytes();
    world.fill(source_bytes(size));
    std::uint64_t first = 0;
    for (const std::uint64_t count : counts) {
      world.run<PutSignalLatencyBody<OfBlock>>({1, 3}, [&](int pe) {
        TransferArguments a{};
        a.kernel = TransferKernel::put_signal;
        a.first = first;
        a.count = count;
        a.memory = world.memory(pe);
        a.slots_offset_bytes = layout.slot_offset_bytes(0, 0);
        a.slot_bytes = layout.slot_bytes;
        a.slots = layout.slots;
        a.size_bytes = size;
        a.peers = pe == 0 ? 1 : 0;
        a.only_peer = 1 - pe;
        a.signal_offset_bytes = signal;
        return a;
      });
      first += count;
    }
    const PatternSlots slots{layout.slots, layout.slot_bytes, size, iterations, seed, 0};
    EXPECT_EQ(world.wrong_at(1, layout.slot_offset_bytes(0, 0), slots), UINT64_MAX);
    for (int pe = 0; pe < 2; ++pe) {
      std::uint64_t seen = 0;
      std::memcpy(&seen, world.memory(pe) + signal, sizeof seen);
      EXPECT_EQ(seen, pe == 1 ? iterations : 0) << size;
    }
  }
}

template <class Scope>
void expect_pingpong(PingPongKernel kernel, std::size_t size_bytes, HostShape shape) {
  World world(2);
  const std::size_t slot = source_bytes(size_bytes);
  const std::size_t flag = slot + (size_bytes == 8 ? 8 : (size_bytes + 63) / 64 * 64);
  const bool is_flag = kernel == PingPongKernel::put && size_bytes <= 8;
  const std::uint64_t mask =
      is_flag && size_bytes < 8 ? (std::uint64_t{1} << 8 * size_bytes) - 1 : ~std::uint64_t{0};
  world.fill(source_bytes(size_bytes));
  std::uint64_t first = 0;
  for (const std::uint64_t count : counts) {
    world.run<PingPongBody<Scope>>(shape, [&](int pe) {
      return PingPongArguments{kernel,    pe == 0 ? PingPongRole::asks : PingPongRole::answers,
                               1 - pe,    is_flag,
                               mask,      first,
                               count,     world.memory(pe),
                               slot,      flag,
                               size_bytes};
    });
    first += count;
  }
  for (int pe = 0; pe < 2; ++pe) {
    std::uint64_t seen = 0;
    std::memcpy(&seen, world.memory(pe) + flag, 8);
    EXPECT_EQ(seen, iterations & mask);
    if (is_flag || kernel == PingPongKernel::signal || kernel == PingPongKernel::store)
      continue;
    EXPECT_FALSE(compare_pattern(world.memory(pe) + slot, size_bytes, seed, 1 - pe,
                                 (iterations - 1) % variants * variant_step_bytes));
  }
}

TEST(BenchKernels, PingPongsReplyToEachOther) {
  for (const PingPongKernel kernel : {PingPongKernel::put, PingPongKernel::put_signal,
                                      PingPongKernel::signal, PingPongKernel::store})
    for (const std::size_t size : {1u, 8u, 1000u}) {
      // A payload that is waited for is a plain store here.
      if (under_thread_sanitizer && kernel == PingPongKernel::put && size <= 8)
        continue;
      expect_pingpong<OfThread>(kernel, size, {1, 1});
      expect_pingpong<OfBlock>(kernel, size, {1, 3});
    }
}

TEST(BenchKernels, AMessageGoesAroundTheRing) {
  constexpr std::size_t size_bytes = 1000;
  for (const int n_pes : {2, 3}) {
    World world(n_pes);
    const std::size_t slot = source_bytes(size_bytes), flag = slot + 1024;
    world.fill(source_bytes(size_bytes));
    world.run<RingBody<OfBlock>>({1, 2}, [&](int pe) {
      return RingArguments{0, iterations, world.memory(pe), slot, flag, size_bytes};
    });
    for (int pe = 0; pe < n_pes; ++pe)
      EXPECT_FALSE(compare_pattern(world.memory(pe) + slot, size_bytes, seed, 0,
                                   (iterations - 1) % variants * variant_step_bytes))
          << pe;
  }
}

TEST(BenchKernels, NoBlockLeavesABarrierEarly) {
  World world(3);
  for (const BarrierKernel kernel : {BarrierKernel::barrier, BarrierKernel::sync}) {
    const auto arguments = [&](int pe) {
      auto* const cells = reinterpret_cast<std::uint64_t*>(world.memory(pe)) +
                          (kernel == BarrierKernel::sync ? 64 : 0);
      return BarrierArguments{kernel, 0, 30, cells, true};
    };
    world.run<CheckedBarrierBody<OfBlock>>({1, 2}, arguments);
    for (int pe = 0; pe < 3; ++pe)
      EXPECT_EQ(world.control(pe).wrong_at, UINT64_MAX);
    world.run<BarrierBody<OfThread>>({1, 1}, arguments);
  }
}

template <class Call>
void expect_moved(CollectiveKernel kernel, std::size_t size_bytes, HostShape shape) {
  constexpr int n_pes = 3;
  World world(n_pes);
  const CollectiveBuffers places{kernel, size_bytes, n_pes};
  world.fill(places.dest_offset_bytes());
  for (int pe = 0; kernel == CollectiveKernel::alltoallv && pe < n_pes; ++pe) {
    const std::vector<std::uint64_t> lists = places.lists(pe);
    std::memcpy(world.memory(pe) + places.lists_offset_bytes(), lists.data(), 8 * lists.size());
  }
  world.run<CollectiveBody<Call>>(shape, [&](int pe) {
    return CollectiveArguments{kernel,     CollectiveNumber::int64,    0,
                               iterations, world.memory(pe),           places.dest_offset_bytes(),
                               size_bytes, places.lists_offset_bytes()};
  });
  const std::size_t variant = (iterations - 1) % variants * variant_step_bytes;
  for (int pe = 0; pe < n_pes; ++pe)
    for (const CollectiveBuffers::Part& part : places.parts(pe))
      EXPECT_FALSE(compare_pattern(world.memory(pe) + places.dest_offset_bytes() + part.at,
                                   part.size_bytes, seed, part.writer, variant + part.from))
          << "PE " << pe << ", part of PE " << part.writer;
}

TEST(BenchKernels, CollectivesLeaveTheirPlaces) {
  for (const HostShape shape : {HostShape{1, 2}, HostShape{3, 1}})
    for (const std::size_t size : {8u, 700u}) {
      expect_moved<Broadcast>(CollectiveKernel::broadcast, size, shape);
      expect_moved<Fcollect>(CollectiveKernel::fcollect, size, shape);
      expect_moved<Alltoall>(CollectiveKernel::alltoall, size, shape);
      expect_moved<Alltoallv>(CollectiveKernel::alltoallv, size, shape);
    }
}

/// The source values of the cases, and the expected results for each type.
template <class Call>
void expect_added_up(CollectiveKernel kernel, CollectiveNumber number, std::size_t size_bytes,
                     HostShape shape) {
  constexpr int n_pes = 3; // bf16 and fp16 round differently if they round at each addition
  World world(n_pes);
  const CollectiveBuffers places{kernel, size_bytes, n_pes};
  const std::size_t width = width_of(number);
  for (int pe = 0; pe < n_pes; ++pe)
    for (std::size_t at = 0; at < places.dest_offset_bytes(); at += width) {
      const std::uint64_t bits = source_bits(number, seed, pe, at / width);
      std::memcpy(world.memory(pe) + at, &bits, width);
    }
  world.run<CollectiveBody<Call>>(shape, [&](int pe) {
    return CollectiveArguments{kernel,
                               number,
                               0,
                               iterations,
                               world.memory(pe),
                               places.dest_offset_bytes(),
                               size_bytes,
                               places.lists_offset_bytes()};
  });
  const std::size_t variant = (iterations - 1) % variants * variant_step_bytes;
  for (int pe = 0; pe < n_pes; ++pe) {
    const std::size_t mine =
        kernel == CollectiveKernel::reducescatter ? static_cast<std::size_t>(pe) * size_bytes : 0;
    for (std::size_t at = 0; at < size_bytes; at += width) {
      std::uint64_t found = 0;
      std::memcpy(&found, world.memory(pe) + places.dest_offset_bytes() + at, width);
      ASSERT_EQ(found, sum_bits(number, seed, n_pes, (variant + mine + at) / width))
          << "PE " << pe << ", byte " << at << " of " << size_bytes;
    }
  }
}

template <template <class> class Call>
void expect_all_added_up(CollectiveKernel kernel, std::size_t size_bytes, HostShape shape) {
  expect_added_up<Call<std::int64_t>>(kernel, CollectiveNumber::int64, size_bytes, shape);
  expect_added_up<Call<float>>(kernel, CollectiveNumber::float32, size_bytes, shape);
  expect_added_up<Call<Bf16>>(kernel, CollectiveNumber::bf16, size_bytes, shape);
  expect_added_up<Call<Fp16>>(kernel, CollectiveNumber::fp16, size_bytes, shape);
}

TEST(BenchKernels, ReductionsLeaveTheSums) {
  for (const HostShape shape : {HostShape{1, 2}, HostShape{3, 1}})
    for (const std::size_t size : {8u, 12008u}) { // in words, and directly into the destination
      expect_all_added_up<Reduce>(CollectiveKernel::reduce, size, shape);
      expect_all_added_up<ReduceScatter>(CollectiveKernel::reducescatter, size, shape);
    }
}

} // namespace
} // namespace shmemctl::bench
