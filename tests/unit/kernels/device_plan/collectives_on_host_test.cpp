// Collectives of the device headers on threads of the host: of mapped members, and over a network.
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/collective_program.cuh"
#include "tests/support/host_kernels.h"

namespace shmemctl::test {
namespace {

using device::Block;
using device::Thread;

constexpr std::size_t heap_bytes = std::size_t{4} << 20;

/// @param nodes by PE; none: all on one
template <class Scope, bool grid>
int wrong_results(int n_pes, HostShape shape, unsigned seed, int count, std::size_t most,
                  const std::vector<int>& nodes = {}) {
  HostKernels kernels(n_pes, heap_bytes);
  if (!nodes.empty())
    kernels.put_on_nodes(nodes);
  const std::vector<Call> calls = random_calls(seed, count, most);
  std::uint64_t wrong = 0;
  kernels.run(shape, [&](const DeviceJob& job) {
    Program<Scope, grid, Types::all>(job, calls.data(), static_cast<int>(calls.size()), &wrong)
        .run();
  });
  return static_cast<int>(wrong);
}

TEST(CollectivesOnHost, OfThreads) {
  for (const int n_pes : {1, 2, 3, 4})
    EXPECT_EQ((wrong_results<Thread, false>(n_pes, {1, 1}, 7, 40, 40000)), 0) << n_pes;
}
TEST(CollectivesOnHost, OfBlocks) {
  EXPECT_EQ((wrong_results<Block, false>(2, {1, 3}, 8, 25, 30000)), 0);
  EXPECT_EQ((wrong_results<Block, false>(4, {1, 2}, 9, 25, 10000)), 0);
}
TEST(CollectivesOnHost, OfGrids) {
  EXPECT_EQ((wrong_results<Block, true>(2, {3, 2}, 10, 20, 30000)), 0);
  EXPECT_EQ((wrong_results<Block, true>(3, {4, 1}, 11, 20, 30000)), 0);
}

/// Blocks are counted in all dimensions of a grid.
TEST(CollectivesOnHost, OfGridsOfTwoAndThreeDimensions) {
  EXPECT_EQ((wrong_results<Block, true>(2, {6, 1, 3}, 18, 20, 30000)), 0);
  EXPECT_EQ((wrong_results<Block, true>(2, {4, 1, 1}, 19, 20, 30000)), 0);
  EXPECT_EQ((wrong_results<Block, true>(2, {8, 1, 2, 2}, 20, 20, 30000)), 0);
  EXPECT_EQ((wrong_results<Block, true>(2, {4, 1, 2}, 21, 20, 30000, {0, 1})), 0);
}

/// All are mapped, but kernels cannot know: the blocks of one PE complete its part together.
TEST(CollectivesOnHost, OfGridsWithANetwork) {
  EXPECT_EQ((wrong_results<Block, true>(2, {3, 2}, 12, 20, 30000, {0, 0})), 0);
}

/// Members that are not mapped, at every position in a team.
TEST(CollectivesOnHost, OverTheNetworkByThreads) {
  EXPECT_EQ((wrong_results<Thread, false>(2, {1, 1}, 12, 40, 40000, {0, 1})), 0);
  EXPECT_EQ((wrong_results<Thread, false>(4, {1, 1}, 13, 40, 40000, {0, 1, 0, 1})), 0);
  EXPECT_EQ((wrong_results<Thread, false>(4, {1, 1}, 14, 40, 40000, {0, 1, 2, 3})), 0);
}
TEST(CollectivesOnHost, OverTheNetworkByBlocksAndGrids) {
  EXPECT_EQ((wrong_results<Block, false>(3, {1, 2}, 15, 25, 30000, {0, 1, 1})), 0);
  EXPECT_EQ((wrong_results<Block, true>(2, {3, 2}, 16, 20, 30000, {0, 1})), 0);
  EXPECT_EQ((wrong_results<Block, true>(4, {2, 1}, 17, 20, 30000, {0, 0, 1, 1})), 0);
}
/// More windows than one, and more blocks than have scratch.
TEST(CollectivesOnHost, LongReductionsOverTheNetworkGoInWindows) {
  constexpr std::size_t count = 70001;
  constexpr int n_pes = 3, blocks = 6;
  HostKernels kernels(n_pes, heap_bytes);
  kernels.put_on_nodes({0, 1, 2});
  ASSERT_LT(plan::network_windows(2, blocks).parts, blocks);
  ASSERT_LT(plan::network_windows(2, blocks).slot_bytes *
                static_cast<std::size_t>(plan::network_windows(2, blocks).parts),
            count / n_pes * sizeof(std::int32_t));
  for (int pe = 0; pe < n_pes; ++pe)
    for (std::size_t i = 0; i < count; ++i)
      reinterpret_cast<std::int32_t*>(kernels.job(pe).heap)[i] =
          static_cast<std::int32_t>(i * 3 + static_cast<std::size_t>(pe));
  std::atomic<int> failed{0};
  kernels.run({blocks, 1}, [&](const DeviceJob& job) {
    auto* const numbers = reinterpret_cast<std::int32_t*>(job.heap);
    if (!device::reduce_grid(job, 0, numbers, numbers, count, device::ReduceOp::sum))
      failed += 1;
  });
  EXPECT_EQ(failed, 0);
  int wrong = 0;
  for (int pe = 0; pe < n_pes; ++pe)
    for (std::size_t i = 0; i < count; ++i)
      wrong += reinterpret_cast<const std::int32_t*>(kernels.job(pe).heap)[i] ==
                       static_cast<std::int32_t>(i * 9 + 3)
                   ? 0
                   : 1;
  EXPECT_EQ(wrong, 0);
}
TEST(CollectivesOnHost, AReductionWithoutAPathIsReported) {
  HostKernels kernels(2, heap_bytes, 0.05);
  kernels.unmap(1);
  std::atomic<int> failed{0};
  kernels.run({1, 1}, [&](const DeviceJob& job) {
    auto* const numbers = reinterpret_cast<std::int32_t*>(job.heap);
    if (job.pe == 0 &&
        !device::reduce<Thread>(job, 0, numbers, numbers + 64, 8, device::ReduceOp::sum))
      failed += 1;
  });
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(kernels.report(0).peer, 1);
}

/// 256 + 1 + 1 and 2048 + 1 + 1: in bf16 and fp16 each 1 is lost, in floats none is.
/// In words, directly into the destination, and by the network.
template <class T>
void expect_sums_of_floats(float large) {
  for (const std::size_t count : {std::size_t{10}, std::size_t{30001}})
    for (const std::vector<int>& nodes : {std::vector<int>{}, std::vector<int>{0, 1, 0}}) {
      HostKernels kernels(3, heap_bytes);
      if (!nodes.empty())
        kernels.put_on_nodes(nodes);
      std::atomic<int> wrong{0};
      kernels.run({1, 2}, [&](const DeviceJob& job) {
        auto* const numbers = reinterpret_cast<T*>(job.heap);
        if (Block::rank() == 0)
          for (std::size_t i = 0; i < count; ++i)
            device::from_float(job.pe == 0 ? large : 1, numbers[i]);
        if (!device::reduce<Block>(job, 0, numbers, numbers, count, device::ReduceOp::sum))
          wrong += 1;
        for (std::size_t i = 0; i < count; ++i)
          wrong += device::to_float(numbers[i]) == large + 2 ? 0 : 1;
      });
      EXPECT_EQ(wrong, 0) << count << " numbers, " << nodes.size() << " nodes";
    }
}
TEST(CollectivesOnHost, SmallNumbersAreAddedUpAsFloats) {
  expect_sums_of_floats<device::Bf16>(256);
  expect_sums_of_floats<device::Fp16>(2048);
}

/// Numbers that change in each round, stored by all threads with no order but the reduction's own,
/// and overwritten on return; each thread checks what others have stored.
template <class Scope>
void expect_reductions_of_the_round(int n_pes, HostShape shape, std::size_t count, bool in_place,
                                    const std::vector<int>& nodes = {}) {
  HostKernels kernels(n_pes, heap_bytes);
  if (!nodes.empty())
    kernels.put_on_nodes(nodes);
  const auto number = [](std::uint64_t round, int pe, std::size_t i) {
    return round * 0x9e3779b97f4a7c15u + i * 8 + static_cast<std::uint64_t>(pe);
  };
  std::atomic<int> wrong{0};
  kernels.run(shape, [&](const DeviceJob& job) {
    auto* const source = reinterpret_cast<std::uint64_t*>(job.heap);
    auto* const other = reinterpret_cast<std::uint64_t*>(job.heap + heap_bytes / 2);
    const auto rank = static_cast<std::size_t>(Scope::rank());
    const auto size = static_cast<std::size_t>(Scope::size());
    for (std::uint64_t round = 1; round <= 12; ++round) {
      const bool scatter = round % 2 == 1;
      std::uint64_t* const dest = in_place && !scatter ? source : other;
      const std::size_t brought = scatter ? count * static_cast<std::size_t>(n_pes) : count;
      const std::size_t first = scatter ? count * static_cast<std::size_t>(job.pe) : 0;
      for (std::size_t i = rank; i < brought; i += size)
        source[i] = number(round, job.pe, i);
      const device::ReduceOp sum = device::ReduceOp::sum;
      if (!(scatter ? device::reducescatter<Scope>(job, 0, dest, source, count, sum)
                    : device::reduce<Scope>(job, 0, dest, source, count, sum))) {
        wrong += 1;
        return;
      }
      for (std::size_t i = (rank + 1) % size; i < count; i += size) {
        std::uint64_t expected = 0;
        for (int pe = 0; pe < n_pes; ++pe)
          expected += number(round, pe, first + i);
        wrong += dest[i] == expected ? 0 : 1;
      }
      if (dest == source)
        Scope::sync();
    }
  });
  EXPECT_EQ(wrong, 0) << n_pes << " PEs, " << count << " numbers, in place " << in_place << ", "
                      << nodes.size() << " nodes";
}
TEST(ReductionsOnHost, AreOfTheRoundsNumbers) {
  for (const std::size_t count : {2, 300, 3000}) // in words, and directly into the destination
    for (const bool in_place : {false, true}) {
      expect_reductions_of_the_round<Thread>(3, {1, 1}, count, in_place);
      expect_reductions_of_the_round<Block>(2, {1, 3}, count, in_place);
    }
}
TEST(ReductionsOnHost, AreOfTheRoundsNumbersOverTheNetwork) {
  for (const std::size_t count : {2, 3000})
    for (const bool in_place : {false, true}) {
      expect_reductions_of_the_round<Thread>(3, {1, 1}, count, in_place, {0, 1, 2});
      expect_reductions_of_the_round<Block>(3, {1, 2}, count, in_place, {0, 1, 0});
    }
}

/// A root that is ahead of the others must not overwrite what they still have to read.
TEST(CollectivesOnHost, BroadcastsInARow) {
  HostKernels kernels(3, heap_bytes);
  std::atomic<int> wrong{0};
  kernels.run({1, 1}, [&](const DeviceJob& job) {
    auto* const word = reinterpret_cast<std::uint64_t*>(job.heap);
    for (std::uint64_t round = 1; round <= 300; ++round) {
      const int root = round % 100 == 0 ? 1 : 0;
      word[1] = round * 7;
      if (!device::broadcast<Thread>(job, 0, word, word + 1, 8, root) || word[0] != round * 7) {
        wrong += 1;
        return;
      }
      if (job.pe == 2 && round % 16 == 0)
        std::this_thread::yield();
    }
  });
  EXPECT_EQ(wrong, 0);
}

/// Gathers whose parts are sent to all members together: messages so short that a few threads do
/// that. Parts whose size is not a multiple of a word, and longer ones, go to one member after the
/// other. In each round all threads store new numbers with no order but the collective's own and
/// the grid's, check all that has come, and overwrite the source at once.
void expect_gathers_of_the_round(int n_pes, HostShape shape, std::size_t size_bytes, bool to_each,
                                 bool in_place) {
  HostKernels kernels(n_pes, heap_bytes);
  for (int pe = 0; pe < n_pes; ++pe) // half of them would load tables
    kernels.job(pe).all_mapped = true;
  const auto number = [](std::uint64_t round, int from, int to, std::size_t i) {
    return static_cast<std::byte>(round * 31 + static_cast<std::uint64_t>(from) * 7 +
                                  static_cast<std::uint64_t>(to) * 13 + i);
  };
  std::atomic<int> wrong{0};
  kernels.run(shape, [&](const DeviceJob& job) {
    std::byte* const dest = job.heap + 4096;
    const std::size_t own = in_place ? size_bytes * static_cast<std::size_t>(job.pe) : 0;
    std::byte* const source = in_place ? dest + own : job.heap + heap_bytes / 2;
    const auto rank = static_cast<std::size_t>(device::Grid::rank() * Block::size()) +
                      static_cast<std::size_t>(Block::rank());
    const auto size = static_cast<std::size_t>(device::Grid::size() * Block::size());
    const device::TeamView team = device::team_view(job, HostKernels::world);
    for (std::uint64_t round = 1; round <= 8; ++round) {
      for (int to = 0; to < (to_each ? n_pes : 1); ++to)
        for (std::size_t i = rank; i < size_bytes; i += size)
          source[static_cast<std::size_t>(to) * size_bytes + i] = number(round, job.pe, to, i);
      bool ok = device::grid_sync(job);
      ok = device::detail::gather_large<Block>(job, team, dest, source, size_bytes,
                                               to_each ? size_bytes : 0,
                                               device::detail::share_of_grid()) &&
           ok;
      ok = device::grid_sync(job) && ok;
      if (!ok) {
        wrong += 1;
        return;
      }
      for (int from = 0; from < n_pes; ++from)
        for (std::size_t i = (rank + 1) % size; i < size_bytes; i += size)
          wrong += dest[static_cast<std::size_t>(from) * size_bytes + i] ==
                           number(round, from, to_each ? job.pe : 0, i)
                       ? 0
                       : 1;
      if (in_place && !device::grid_sync(job)) // others still look at what is overwritten
        wrong += 1;
    }
  });
  EXPECT_EQ(wrong, 0) << n_pes << " PEs, " << size_bytes << " bytes, to each " << to_each
                      << ", in place " << in_place;
}
TEST(CollectivesOnHost, GathersSentTogether) {
  ASSERT_TRUE(plan::is_sent_together(2, 4, 128, 2));
  ASSERT_FALSE(plan::is_sent_together(2, 4, 144, 2));
  for (const std::size_t size_bytes :
       {std::size_t{16}, std::size_t{240}, std::size_t{250}, std::size_t{1024}})
    for (const bool to_each : {false, true}) {
      expect_gathers_of_the_round(1, {1, 2}, size_bytes, to_each, false);
      expect_gathers_of_the_round(2, {2, 2}, size_bytes, to_each, false);
      expect_gathers_of_the_round(3, {2, 3}, size_bytes, to_each, false);
      expect_gathers_of_the_round(4, {2, 2}, size_bytes, to_each, false);
      expect_gathers_of_the_round(8, {1, 4}, size_bytes, to_each, false);
    }
  for (const std::size_t size_bytes : {std::size_t{128}, std::size_t{250}})
    expect_gathers_of_the_round(4, {2, 2}, size_bytes, false, true);
}
TEST(CollectivesOnHost, AGatherSentTogetherEndsAndNamesThePeer) {
  HostKernels kernels(2, heap_bytes, 0.05);
  std::atomic<int> failed{0};
  kernels.run({1, 2}, [&](const DeviceJob& job) {
    if (job.pe == 0 &&
        !device::detail::gather_large<Block>(job, device::team_view(job, HostKernels::world),
                                             job.heap, job.heap + heap_bytes / 2, 128, 0, {0, 1}))
      failed += 1;
  });
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(kernels.report(0).peer, 1);
}

/// Collectives whose peer never arrives end, too.
TEST(CollectivesOnHost, ACollectiveEndsAndNamesThePeer) {
  for (const std::size_t size : {std::size_t{64}, std::size_t{100000}}) {
    HostKernels kernels(2, heap_bytes, 0.05);
    std::atomic<int> failed{0};
    kernels.run({1, 2}, [&](const DeviceJob& job) {
      if (job.pe == 0 &&
          !device::fcollect<Block>(job, 0, job.heap, job.heap + heap_bytes / 2, size))
        failed += 1;
    });
    EXPECT_EQ(failed, 2);
    EXPECT_EQ(kernels.report(0).peer, 1);
  }
}

} // namespace
} // namespace shmemctl::test
