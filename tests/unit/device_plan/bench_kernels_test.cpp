// What measuring kernels do, on threads of the host: that they move what they are timed for.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/bench/atomics_kernel.cuh"
#include "kernels/bench/check_kernel.cuh"
#include "kernels/bench/collectives_kernel.cuh"
#include "kernels/bench/meeting_kernel.cuh"
#include "kernels/bench/pingpong_kernel.cuh"
#include "kernels/bench/transfer_kernel.cuh"
#include "src/bench/cases/slots.h"
#include "src/bench/gpu/collective_places.h"
#include "tests/support/host_kernels.h"

namespace shmemctl::bench {
namespace {

using shmemctl::test::HostKernels;
using shmemctl::test::HostShape;

constexpr std::size_t heap_bytes = std::size_t{1} << 20;
constexpr std::uint64_t seed = 77;
/// iterate() is called with these counts, one after the other.
const std::vector<std::uint64_t> counts = {1, 3, 8};
constexpr std::uint64_t iterations = 12;

class World {
public:
  explicit World(int n_pes)
      : kernels_(n_pes, heap_bytes), controls_(static_cast<std::size_t>(n_pes)) {}

  int n_pes() const { return static_cast<int>(controls_.size()); }
  std::byte* memory(int pe) { return kernels_.job(pe).heap; }
  KernelControl& control(int pe) { return controls_[static_cast<std::size_t>(pe)]; }

  /// @param arguments_of by PE
  template <class Body, class ArgumentsOf>
  void run(HostShape shape, const ArgumentsOf& arguments_of) {
    kernels_.run(shape, [&](const DeviceJob& job) {
      Body::run(job, &control(job.pe), arguments_of(job.pe));
    });
    for (int pe = 0; pe < n_pes(); ++pe) {
      EXPECT_EQ(control(pe).failed, 0u);
      EXPECT_EQ(kernels_.report(pe).state, WaitReport::none);
    }
  }
  void fill(std::size_t size_bytes) {
    kernels_.run({2, 2}, [&](const DeviceJob& job) {
      FillBody::run(job, &control(job.pe),
                    {reinterpret_cast<std::uint64_t*>(job.heap), size_bytes / 8, seed, job.pe});
    });
  }
  /// Where PE's area differs first from what it must hold; UINT64_MAX: nowhere.
  std::uint64_t wrong_at(int pe, std::size_t offset_bytes, const PatternSlots& slots) {
    run<CheckBody>({2, 2}, [&](int at) {
      PatternSlots mine = slots;
      if (at != pe)
        mine.slots = 0; // an empty area
      return CheckArguments{memory(at) + offset_bytes, mine};
    });
    return control(pe).wrong_at;
  }

private:
  HostKernels kernels_;
  std::vector<KernelControl> controls_;
};

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
  const SlotLayout layout(message, peers, how.window * peers, 1);
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
  for (const std::size_t size : {1u, 100u, 4097u}) {
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

TEST(BenchKernels, PingPongsAnswerEachOther) {
  for (const PingPongKernel kernel : {PingPongKernel::put, PingPongKernel::put_signal,
                                      PingPongKernel::signal, PingPongKernel::store})
    for (const std::size_t size : {1u, 8u, 1000u}) {
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

TEST(BenchKernels, NobodyLeavesAMeetingEarly) {
  World world(3);
  for (const MeetingKernel kernel : {MeetingKernel::barrier, MeetingKernel::sync}) {
    const auto arguments = [&](int pe) {
      auto* const cells = reinterpret_cast<std::uint64_t*>(world.memory(pe)) +
                          (kernel == MeetingKernel::sync ? 64 : 0);
      return MeetingArguments{kernel, 0, 30, cells, true};
    };
    world.run<WatchedMeetingBody<OfBlock>>({1, 2}, arguments);
    for (int pe = 0; pe < 3; ++pe)
      EXPECT_EQ(world.control(pe).wrong_at, UINT64_MAX);
    world.run<MeetingBody<OfThread>>({1, 1}, arguments);
  }
}

TEST(BenchKernels, AtomicsLeaveWhatTheirNumberSays) {
  for (const AtomicKernel kernel :
       {AtomicKernel::fetch, AtomicKernel::set, AtomicKernel::swap, AtomicKernel::compare_swap,
        AtomicKernel::fetch_add, AtomicKernel::add}) {
    World world(2);
    std::uint64_t first = 0;
    for (const std::uint64_t count : counts) {
      world.run<AtomicLatencyBody<std::uint32_t>>({1, 2}, [&](int pe) {
        return AtomicArguments{kernel, first, count, world.memory(pe), 4, pe == 0 ? 1 : -1};
      });
      EXPECT_EQ(world.control(0).wrong_at, UINT64_MAX);
      first += count;
    }
    std::uint32_t seen = 0;
    std::memcpy(&seen, world.memory(1), sizeof seen);
    EXPECT_EQ(seen, static_cast<std::uint32_t>(atomic_after(kernel, iterations)));
  }
}

TEST(BenchKernels, AWrongFetchIsFound) {
  World world(2);
  world.memory(1)[0] = std::byte{9};
  world.run<AtomicLatencyBody<std::uint64_t>>({1, 1}, [&](int pe) {
    return AtomicArguments{AtomicKernel::fetch_add, 0, 3, world.memory(pe), 8, pe == 0 ? 1 : -1};
  });
  EXPECT_EQ(world.control(0).wrong_at, 0u);
  EXPECT_EQ(world.control(0).found, 9u);
}

TEST(BenchKernels, EveryThreadAddsToAWordOfItsOwn) {
  World world(2);
  world.run<AtomicRateBody<std::uint64_t>>({2, 3}, [&](int pe) {
    return AtomicArguments{AtomicKernel::add, 0, iterations, world.memory(pe), 8, 1 - pe};
  });
  for (int pe = 0; pe < 2; ++pe)
    for (std::size_t word = 0; word < 7; ++word) {
      std::uint64_t seen = 0;
      std::memcpy(&seen, world.memory(pe) + 8 * word, sizeof seen);
      EXPECT_EQ(seen, word < 6 ? atomic_after(AtomicKernel::add, iterations) : 0) << word;
    }
}

template <class Call>
void expect_moved(CollectiveKernel kernel, std::size_t size_bytes, HostShape shape) {
  constexpr int n_pes = 3;
  World world(n_pes);
  const CollectivePlaces places{kernel, size_bytes, n_pes};
  world.fill(places.dest_offset_bytes());
  for (int pe = 0; kernel == CollectiveKernel::alltoallv && pe < n_pes; ++pe) {
    const std::vector<std::uint64_t> lists = places.lists(pe);
    std::memcpy(world.memory(pe) + places.lists_offset_bytes(), lists.data(), 8 * lists.size());
  }
  world.run<CollectiveBody<Call>>(shape, [&](int pe) {
    return CollectiveArguments{kernel,
                               false,
                               0,
                               iterations,
                               world.memory(pe),
                               places.dest_offset_bytes(),
                               size_bytes,
                               places.lists_offset_bytes()};
  });
  const std::size_t variant = (iterations - 1) % variants * variant_step_bytes;
  for (int pe = 0; pe < n_pes; ++pe)
    for (const CollectivePlaces::Part& part : places.parts(pe))
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

} // namespace
} // namespace shmemctl::bench
