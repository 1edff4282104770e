// Low latency between ranks that reach each other by a network, on threads of the host: the
// kernels' own code, with a network that copies memory, verified against the oracle.
#include <barrier>
#include <deque>
#include <utility>

#include <gtest/gtest.h>

#include "tests/gpu/moe_routings.h"
#include "tests/support/moe_low_latency_internode_world.h"

namespace shmemctl::test {
namespace {

constexpr Setting settings[] = {{moe::Scales::none, true},
                                {moe::Scales::none, false},
                                {moe::Scales::float32, true},
                                {moe::Scales::ue8m0, false},
                                {moe::Scales::none, true, true}};

/// The block that receives in a dispatch with LowLatencyInternodeWorld::grid: the others send.
constexpr unsigned receiving_block = LowLatencyInternodeWorld::grid.blocks - 1;
/// Below a wait's timeout, and far above what a busy machine adds to a wait.
constexpr std::uint64_t late_ns = 60'000'000'000;

/// All of four ranks but this one.
std::vector<std::int32_t> all_but(std::int32_t rank) {
  std::vector<std::int32_t> others{0, 1, 2, 3};
  std::erase(others, rank);
  return others;
}

void expect_right(LowLatencyInternodeWorld& world, std::int32_t n_ranks, int number,
                  const std::string& where) {
  world.kernels().run(LowLatencyInternodeWorld::grid,
                      [&](const DeviceJob& job) { world.dispatch(job); });
  for (std::int32_t rank = 0; rank < n_ranks; ++rank)
    ASSERT_EQ(world.poll_and_work(rank, number), "") << where;
  world.kernels().run({2, 2}, [&](const DeviceJob& job) { world.combine(job); });
  for (std::int32_t rank = 0; rank < n_ranks; ++rank)
    ASSERT_EQ(world.wrong_results(rank), "") << where;
}

TEST(LowLatencyInternode, EveryBitOfEveryRow) {
  for (const std::vector<int>& nodes : {std::vector<int>{0, 0, 1, 1}, {0, 1}, {0, 1, 2}})
    for (const Setting& setting : settings) {
      const auto n_ranks = static_cast<std::int32_t>(nodes.size());
      const moe::Shape shape = shape_of(n_ranks, 13);
      for (const NamedRouting& routing : all_routings(shape)) {
        LowLatencyInternodeWorld world(shape, setting, routing.routing, nodes);
        if (setting.weighted) // the other settings show races
          world.kernels().keep_in_flight();
        for (int number = 1; number <= 3; ++number) {
          world.poison();
          expect_right(world, n_ranks, number, routing.name);
        }
      }
    }
}

TEST(LowLatencyInternode, MoreRanksThanANodeHas) {
  const std::vector<int> nodes{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
  const moe::Shape shape = shape_of(12, 3);
  for (const Setting& setting : settings) {
    LowLatencyInternodeWorld world(shape, setting, all_routings(shape)[0].routing, nodes);
    for (int number = 1; number <= 2; ++number) {
      world.poison();
      expect_right(world, 12, number, "12 ranks");
    }
  }
}

/// As in a stream: a rank may be one call ahead of another, in particular of one that it has no
/// tokens for, and whose outputs it does not wait for.
void call_in_a_row(const moe::Shape& shape, const NamedRouting& routing, bool keeps_in_flight) {
  LowLatencyInternodeWorld world(shape, settings[0], routing.routing, {0, 0, 1, 1},
                                 HostKernels::timeout_s());
  if (keeps_in_flight)
    world.kernels().keep_in_flight();
  expect_right(world, 4, 1, "first");
  // A launch ends when all its threads end; the next one waits for that, and then sees everything.
  std::deque<std::barrier<>> ends; // by PE
  for (int pe = 0; pe < 4; ++pe)
    ends.emplace_back(LowLatencyInternodeWorld::grid.blocks *
                      LowLatencyInternodeWorld::grid.threads);
  world.kernels().run(LowLatencyInternodeWorld::grid, [&](const DeviceJob& job) {
    for (int pair = 0; pair < 8; ++pair) {
      world.dispatch(job);
      ends[static_cast<std::size_t>(job.pe)].arrive_and_wait();
      world.combine(job);
      ends[static_cast<std::size_t>(job.pe)].arrive_and_wait();
    }
  });
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(world.wrong_results(rank), "") << routing.name;
    for (std::int32_t other = 0; other < 4; ++other)
      EXPECT_EQ(world.flags(rank).masked[other], 0U) << routing.name;
  }
}
TEST(LowLatencyInternode, CallsInARow) {
  const moe::Shape shape = shape_of(4, 13); // all_routings() has no more tokens of a rank
  for (const NamedRouting& routing : all_routings(shape))
    for (const bool keeps_in_flight : {false, true})
      call_in_a_row(shape, routing, keeps_in_flight);
}

TEST(LowLatencyInternode, AMissingRankIsMasked) {
  for (const int missing : {1, 2}) { // mapped by rank 0, and not
    const moe::Shape shape = shape_of(4, 9);
    LowLatencyInternodeWorld world(shape, settings[1], all_routings(shape)[0].routing,
                                   {0, 0, 1, 1});
    LateRank late(world, missing, all_but(missing), receiving_block);
    world.kernels().run(LowLatencyInternodeWorld::grid, [&](const DeviceJob& job) {
      if (job.pe != missing)
        world.dispatch(job);
      else
        late.delay(2 * job.timeout_ns);
    });
    for (std::int32_t rank = 0; rank < 4; ++rank) {
      if (rank == missing)
        continue;
      for (std::int32_t source = 0; source < 4; ++source) {
        EXPECT_EQ(world.flags(rank).masked[source] != 0, source == missing) << rank;
        EXPECT_EQ(world.count_from(rank, source) < 0, source == missing) << rank;
      }
    }
  }
}

/// Until a source has begun, a wait is skew; from then on it is transfer. A mapped source sets a
/// flag when it begins; of others, the count that precedes their rows is the first that arrives.
TEST(LowLatencyInternode, DispatchKnowsABeginningFromRows) {
  const moe::Shape shape = shape_of(4, 9);
  for (const bool begins_late : {true, false}) {
    LowLatencyInternodeWorld world(shape, settings[1], all_routings(shape)[0].routing,
                                   {0, 0, 1, 1});
    expect_right(world, 4, 1, "on time");
    for (std::int32_t rank = 0; rank < 4; ++rank)
      for (std::int32_t source = 0; source < 4; ++source)
        EXPECT_EQ(world.flags(rank).begun[source], rank / 2 == source / 2 ? 1U : 0U);
    const moe::LowLatencyState before = world.flags(0);
    if (!begins_late)
      world.flags(0).begun[1] = 2; // as if rank 1 had begun, and its rows took their time
    LateRank late(world, 1, {0}, receiving_block);
    world.kernels().run(LowLatencyInternodeWorld::grid, [&](const DeviceJob& job) {
      if (job.pe == 1)
        late.delay(late_ns);
      world.dispatch(job);
    });
    const moe::LowLatencyState& after = world.flags(0);
    const std::uint64_t begin_ns = after.begin_wait_ns[1] - before.begin_wait_ns[1];
    const std::uint64_t all_ns = after.wait_ns[0][1] - before.wait_ns[0][1];
    EXPECT_GE(all_ns, late_ns);
    EXPECT_LE(begin_ns, all_ns);
    if (begins_late) {
      EXPECT_GE(begin_ns, late_ns);
    }
    EXPECT_LT(begins_late ? all_ns - begin_ns : begin_ns, late_ns / 2);
  }
}

/// Every rank that is waited for is in the wait matrix, whichever of a token's choices it holds;
/// the time of warps that wait simultaneously counts once.
TEST(LowLatencyInternode, CombineCountsTheWaitForEachRank) {
  const moe::Shape shape = shape_of(4, 6);
  const moe::Routing routing(4, {4, {0, 5, 10, 15, 1, 6, 11, 16, 2, 7, 12, 17}}); // by rank: 3 last
  for (const Setting& setting : {settings[0], settings[1]}) {
    LowLatencyInternodeWorld world(shape, setting, routing, {0, 0, 1, 1});
    expect_right(world, 4, 1, "on time");
    world.kernels().run(LowLatencyInternodeWorld::grid,
                        [&](const DeviceJob& job) { world.dispatch(job); });
    std::vector<std::uint64_t> before_ns;
    for (const std::int32_t rank : all_but(3))
      before_ns.push_back(world.flags(rank).wait_ns[1][3]);
    LateRank late(world, 3, all_but(3), 0, 0);
    const std::uint64_t begin_ns = device::global_time_ns();
    world.kernels().run({2, 2}, [&](const DeviceJob& job) {
      if (job.pe == 3)
        late.delay(late_ns);
      world.combine(job);
    });
    const std::uint64_t all_ns = device::global_time_ns() - begin_ns;
    for (const std::int32_t rank : {0, 1, 2}) {
      const std::uint64_t waited_ns =
          world.flags(rank).wait_ns[1][3] - before_ns[static_cast<std::size_t>(rank)];
      EXPECT_GE(waited_ns, late_ns) << rank;
      EXPECT_LE(waited_ns, all_ns) << rank;
      EXPECT_GT(world.flags(rank).wait_ns[1][1], 0U) << rank;
    }
  }
}

/// What a receive half uses without its send half has arrived by itself, and nothing is left.
TEST(LowLatencyInternode, SeparateHalves) {
  for (const Setting& setting : settings) {
    const moe::Shape shape = shape_of(4, 9);
    LowLatencyInternodeWorld world(shape, setting, all_routings(shape)[0].routing, {0, 0, 1, 1});
    for (int number = 1; number <= 3; ++number) {
      const std::string where = "call " + std::to_string(number);
      world.poison();
      world.kernels().run({2, 2},
                          [&](const DeviceJob& job) { world.dispatch(job, moe::Phases::send); });
      for (std::int32_t rank = 0; rank < 4; ++rank) {
        ASSERT_EQ(world.flags(rank).sent, static_cast<std::uint64_t>(number)) << where;
        ASSERT_EQ(world.flags(rank).received, static_cast<std::uint64_t>(number - 1)) << where;
      }
      world.kernels().run({1, 2},
                          [&](const DeviceJob& job) { world.dispatch(job, moe::Phases::receive); });
      for (std::int32_t rank = 0; rank < 4; ++rank)
        ASSERT_EQ(world.poll_and_work(rank, number), "") << where;
      const auto combine = [&](moe::Phases phases) {
        world.kernels().run({2, 2}, [&](const DeviceJob& job) { world.combine(job, phases); });
      };
      combine(moe::Phases::send);
      for (std::int32_t rank = 0; rank < 4; ++rank) {
        ASSERT_EQ(world.flags(rank).combined, static_cast<std::uint64_t>(number - 1)) << where;
        ASSERT_NE(world.wrong_results(rank), "") << where << ": nobody has added up yet";
      }
      combine(moe::Phases::receive);
      for (std::int32_t rank = 0; rank < 4; ++rank)
        ASSERT_EQ(world.wrong_results(rank), "") << where;
    }
  }
}

/// No rank has every other rank's first choice.
TEST(LowLatencyInternode, OutputsAreSentFirstToTheNextRank) {
  const moe::Shape shape = shape_of(4, 3);
  const moe::Routing routing(4, {4, {0, 5, 10, 15, 1, 6, 11, 16}});
  LowLatencyInternodeWorld world(shape, settings[0], routing, {0, 1, 2, 3});
  world.kernels().run(LowLatencyInternodeWorld::grid,
                      [&](const DeviceJob& job) { world.dispatch(job); });
  for (std::int32_t rank = 0; rank < 4; ++rank)
    world.kernels().network(rank).take_peers();
  world.kernels().run({1, 1}, [&](const DeviceJob& job) { world.combine(job, moe::Phases::send); });
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    std::vector<int> homes = world.kernels().network(rank).take_peers();
    homes.erase(std::unique(homes.begin(), homes.end()), homes.end());
    EXPECT_EQ(homes, (std::vector<int>{(rank + 1) % 4, (rank + 2) % 4, (rank + 3) % 4})) << rank;
  }
}

/// A masked rank continues: it receives the rows that were sent before, announces its outputs
/// before the others read them, and runs two more calls. Neither side uses the other's data.
TEST(LowLatencyInternode, DataOfALateMaskedRankIsIgnored) {
  for (const Setting& setting : {settings[0], settings[1], settings[4]})
    for (const std::int32_t late : {1, 2}) {
      const moe::Shape shape = shape_of(4, 9);
      LowLatencyInternodeWorld world(shape, setting, all_routings(shape)[0].routing, {0, 0, 1, 1});
      expect_right(world, 4, 1, "all in time");
      world.poison(); // outputs of earlier calls are no valid numbers from here on
      const std::vector<std::int32_t> on_time_ranks = all_but(late);
      const auto run = [&](bool is_late, HostShape grid, const auto& kernel) {
        world.kernels().run(grid, [&](const DeviceJob& job) {
          if ((job.pe == late) == is_late)
            kernel(job);
        });
      };
      const auto dispatch = [&](const DeviceJob& job) { world.dispatch(job); };
      {
        LateRank absent(world, late, on_time_ranks, receiving_block);
        world.kernels().run(LowLatencyInternodeWorld::grid, [&](const DeviceJob& job) {
          if (job.pe != late)
            world.dispatch(job); // the other ranks mask it
          else
            absent.delay(2 * job.timeout_ns);
        });
      }
      run(true, LowLatencyInternodeWorld::grid, dispatch); // all ranks' rows have come
      ASSERT_EQ(world.poll_and_work(late, 2), "");
      run(true, {2, 2}, [&](const DeviceJob& job) { world.combine(job, moe::Phases::send); });
      for (const std::int32_t rank : on_time_ranks)
        ASSERT_EQ(world.poll_and_work(rank, 2, {late}), "");
      run(false, {2, 2}, [&](const DeviceJob& job) { world.combine(job); });
      // No other rank takes part, so that a short timeout does not depend on speed.
      const std::uint64_t timeout_ns =
          std::exchange(world.kernels().job(late).timeout_ns, 100'000'000);
      run(true, {2, 2}, [&](const DeviceJob& job) { world.combine(job, moe::Phases::receive); });
      world.kernels().job(late).timeout_ns = timeout_ns;
      for (int number = 2;; ++number) {
        for (const std::int32_t rank : on_time_ranks)
          ASSERT_EQ(world.wrong_results(rank, {late}), "") << "call " << number;
        ASSERT_EQ(world.wrong_results(late, on_time_ranks), "") << "call " << number;
        if (number == 4)
          break;
        world.kernels().run(LowLatencyInternodeWorld::grid, dispatch);
        for (const std::int32_t rank : on_time_ranks)
          ASSERT_EQ(world.poll_and_work(rank, number + 1, {late}), "");
        ASSERT_EQ(world.poll_and_work(late, number + 1, on_time_ranks), "");
        world.kernels().run({2, 2}, [&](const DeviceJob& job) { world.combine(job); });
      }
    }
}

TEST(LowLatencyInternode, AMaskedRankIsNotPolled) {
  const auto flags = std::make_unique<moe::LowLatencyFlags>();
  flags->masked[3] = 1;
  const auto is_there = [] { return true; };
  EXPECT_FALSE(moe::wait_or_mask(flags.get(), 3, 1000000000, is_there));
  EXPECT_TRUE(moe::wait_or_mask(flags.get(), 2, 1000000000, is_there));
}

} // namespace
} // namespace shmemctl::test
