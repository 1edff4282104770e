// Dispatch and combine across nodes on threads of the host: the kernels' own code, with a network
// that is a copy, verified against the oracle. Mutants: device_mutants.sh.
#include <chrono>

#include <gtest/gtest.h>

#include "tests/gpu/moe_routings.h"
#include "tests/support/moe_internode_world.h"

namespace shmemctl::test {
namespace {

moe::InternodeShape internode_shape(std::int32_t n_ranks, std::int32_t node_ranks,
                                    moe::Format format, std::int32_t max_tokens = 21) {
  moe::InternodeShape shape{};
  shape.shape.n_ranks = n_ranks;
  shape.shape.n_experts = n_ranks * 3;
  shape.shape.top_k = 3;
  shape.shape.hidden = 128;
  shape.shape.max_tokens = max_tokens;
  shape.format = format;
  shape.node_ranks = node_ranks;
  shape.chunk_rows = 4;
  return shape;
}

/// How the network between nodes executes operations. Each test runs with both: the first exposes
/// races to ThreadSanitizer, the second reorders operations as any network may.
enum class Network { at_once, keeps_in_flight };
class Hybrid : public testing::TestWithParam<Network> {
protected:
  /// Before the first call.
  static void set_network(InternodeWorld& world) {
    if (GetParam() == Network::keeps_in_flight)
      world.kernels().keep_in_flight();
  }
};
INSTANTIATE_TEST_SUITE_P(Networks, Hybrid,
                         testing::Values(Network::at_once, Network::keeps_in_flight),
                         [](const auto& network) {
                           return network.param == Network::at_once ? "AtOnce" : "KeepsInFlight";
                         });

void expect_right(InternodeWorld& world, std::int32_t n_ranks, bool with_bias,
                  const std::string& where) {
  world.poison();
  world.kernels().run(InternodeWorld::counting, [&](const DeviceJob& job) { world.notify(job); });
  world.kernels().run({2, 2}, [&](const DeviceJob& job) { world.dispatch(job); });
  for (std::int32_t rank = 0; rank < n_ranks; ++rank) {
    ASSERT_EQ(world.wrong_rows(rank), "") << where;
    ASSERT_EQ(world.kernels().report(rank).state, WaitReport::none) << where;
  }
  world.run_experts();
  world.kernels().run({2, 2}, [&](const DeviceJob& job) { world.combine(job, with_bias); });
  for (std::int32_t rank = 0; rank < n_ranks; ++rank)
    ASSERT_EQ(world.wrong_results(rank, with_bias), "") << where;
}

TEST_P(Hybrid, EveryBitOfEveryRow) {
  for (const auto& [n_ranks, node_ranks] : {std::pair{4, 2}, {2, 1}, {3, 1}, {6, 2}, {4, 4}})
    for (const moe::Format format : {moe::Format::bf16, moe::Format::fp8}) {
      const moe::InternodeShape shape = internode_shape(n_ranks, node_ranks, format);
      for (const NamedRouting& routing : all_routings(shape.shape)) {
        InternodeWorld world(shape, routing.routing, true);
        set_network(world);
        expect_right(world, n_ranks, format == moe::Format::bf16,
                     std::to_string(n_ranks) + " ranks, " + std::to_string(node_ranks) +
                         " on a node, " + routing.name);
      }
    }
}

TEST_P(Hybrid, MoreRanksThanANodeHas) {
  for (const auto& [n_ranks, node_ranks] : {std::pair{16, 8}, {12, 1}}) {
    const moe::InternodeShape shape = internode_shape(n_ranks, node_ranks, moe::Format::bf16, 5);
    for (const bool by_network : {true, false}) {
      InternodeWorld world(shape, all_routings(shape.shape)[0].routing, by_network);
      set_network(world);
      expect_right(world, n_ranks, false,
                   std::to_string(n_ranks) + " ranks, " + std::to_string(node_ranks) +
                       (by_network ? " on a node" : " on a node, mapped"));
    }
  }
}

TEST_P(Hybrid, WeightsAreReturned) {
  for (const auto& [n_ranks, node_ranks] : {std::pair{4, 2}, {3, 1}, {6, 2}, {4, 4}}) {
    moe::InternodeShape shape = internode_shape(n_ranks, node_ranks, moe::Format::bf16);
    shape.combined_weights = true;
    for (const std::int32_t top_k : {3, 4}) { // not a multiple of 16 bytes, and one
      shape.shape.top_k = top_k;
      for (const NamedRouting& routing : all_routings(shape.shape)) {
        InternodeWorld world(shape, routing.routing, true);
        set_network(world);
        expect_right(world, n_ranks, false,
                     std::to_string(n_ranks) + " ranks, " + std::to_string(node_ranks) +
                         " on a node, top " + std::to_string(top_k) + ", " + routing.name);
      }
    }
  }
}

/// From one row to all rows at once, with different numbers in each direction, in the same memory:
/// words of an earlier call's chunks must not be taken for those of this call.
TEST_P(Hybrid, ChunksOfAnyNumberOfRows) {
  for (const auto& [n_ranks, node_ranks] : {std::pair{4, 2}, {3, 1}}) {
    const moe::InternodeShape shape = internode_shape(n_ranks, node_ranks, moe::Format::bf16);
    for (const NamedRouting& routing : all_routings(shape.shape)) {
      InternodeWorld world(shape, routing.routing, true);
      set_network(world);
      for (const auto& [of_dispatch, of_combine] :
           {std::pair{16, 16}, {1, 21}, {21, 1}, {2, 5}, {64, 3}, {1, 1}}) {
        world.set_chunks(of_dispatch, of_combine);
        expect_right(world, n_ranks, true,
                     std::to_string(of_dispatch) + " and " + std::to_string(of_combine) +
                         " rows, " + routing.name);
      }
    }
  }
}

/// If kernels load and store everywhere, internode data is moved that way, too.
TEST_P(Hybrid, NodesThatMapEachOther) {
  const moe::InternodeShape shape = internode_shape(4, 2, moe::Format::bf16);
  InternodeWorld world(shape, all_routings(shape.shape)[0].routing, false);
  set_network(world);
  expect_right(world, 4, false, "mapped");
}

/// Calls in a row, as in a stream: a rank may be one call ahead of another. All memory is reused;
/// the results of the last call must be right. Two calls of one kind in succession: otherwise a
/// call of the other kind, which also synchronises with the rail, is between them.
void call_in_a_row(InternodeWorld& world) {
  constexpr int pairs = 6;
  world.run_experts(); // the experts' output is the same each time
  world.kernels().run({1, 3}, [&](const DeviceJob& job) {
    for (int pair = 0; pair < pairs; ++pair) {
      if (pair % 3 == 0)
        world.notify(job);
      device::Block::sync(); // the launch is over
      for (int call = 0; call < 4; ++call) {
        if (call < 2)
          world.dispatch(job);
        else
          world.combine(job, false);
        device::Block::sync();
      }
    }
  });
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(world.wrong_results(rank, false), "");
    EXPECT_EQ(world.kernels().report(rank).state, WaitReport::none);
  }
}
TEST_P(Hybrid, CallsInARow) {
  const moe::InternodeShape shape = internode_shape(4, 2, moe::Format::bf16, 9);
  InternodeWorld world(shape, all_routings(shape.shape)[0].routing, true);
  set_network(world);
  call_in_a_row(world);
}
/// The sender waits only for what it must wait for.
TEST_P(Hybrid, CallsInARowOfOneSender) {
  const moe::InternodeShape shape = internode_shape(4, 2, moe::Format::bf16, 60);
  InternodeWorld world(shape, all_routings(shape.shape)[2].routing, true);
  set_network(world);
  call_in_a_row(world);
}

/// If ranks wait only for each other's values, a rank may be one call ahead, and its value of that
/// call may arrive before the one of this call: no rank times out, nor confuses the two.
TEST_P(Hybrid, NumbersOfCallsMayOvertakeEachOther) {
  for (const auto& [n_ranks, node_ranks] : {std::pair{2, 1}, {3, 1}, {4, 2}}) {
    const moe::InternodeShape shape = internode_shape(n_ranks, node_ranks, moe::Format::bf16, 3);
    moe::Routing nothing = all_routings(shape.shape)[0].routing;
    for (moe::RankRouting& rank : nothing)
      rank.experts.clear();
    InternodeWorld world(shape, nothing, true, HostKernels::timeout_s());
    set_network(world);
    world.kernels().run(InternodeWorld::counting, [&](const DeviceJob& job) { world.notify(job); });
    world.kernels().run({1, 2}, [&](const DeviceJob& job) {
      for (int call = 0; call < 80; ++call) {
        world.dispatch(job);
        device::Block::sync(); // the launch is over
      }
    });
    for (std::int32_t rank = 0; rank < n_ranks; ++rank)
      EXPECT_EQ(world.kernels().report(rank).state, WaitReport::none)
          << n_ranks << " ranks, rank " << rank << " waited for "
          << world.kernels().report(rank).peer;
  }
}
/// A message of the next notify may arrive before the one of this one: each plan must be that of
/// its own call; every second call differs.
TEST_P(Hybrid, MessagesOfNotificationsMayOvertakeEachOther) {
  for (const auto& [n_ranks, node_ranks] : {std::pair{2, 1}, {4, 2}}) {
    const moe::InternodeShape shape = internode_shape(n_ranks, node_ranks, moe::Format::bf16, 9);
    InternodeWorld world(shape, all_routings(shape.shape)[0].routing, true,
                         HostKernels::timeout_s());
    set_network(world);
    const std::vector<std::int32_t> expected[] = {world.counts_of(9), world.counts_of(4)};
    std::atomic<int> wrong{0};
    world.kernels().run(InternodeWorld::counting, [&](const DeviceJob& job) {
      for (int call = 0; call < 60; ++call) {
        world.notify_of(job, call % 2 == 0 ? 9 : 4);
        device::Block::sync(); // the launch is over
        if (device::Block::rank() == 0 &&
            !std::equal(expected[call % 2].begin(), expected[call % 2].end(),
                        world.plan_of(job.pe).counts))
          ++wrong;
        device::Block::sync();
      }
    });
    EXPECT_EQ(wrong, 0) << n_ranks << " ranks";
    for (std::int32_t rank = 0; rank < n_ranks; ++rank)
      EXPECT_EQ(world.kernels().report(rank).state, WaitReport::none)
          << n_ranks << " ranks, rank " << rank << " waited for "
          << world.kernels().report(rank).peer;
  }
}

TEST_P(Hybrid, ARankThatDoesNotComeIsNamed) {
  for (const int missing : {1, 2}) // a rank of the node, then one of the rail
    for (int op = 0; op < 3; ++op) {
      const moe::InternodeShape shape = internode_shape(4, 2, moe::Format::bf16);
      InternodeWorld world(shape, all_routings(shape.shape)[0].routing, true, 0.2);
      set_network(world);
      if (op > 0)
        world.kernels().run(InternodeWorld::counting,
                            [&](const DeviceJob& job) { world.notify(job); });
      if (op > 1)
        world.kernels().run({1, 2}, [&](const DeviceJob& job) { world.dispatch(job); });
      world.kernels().run({1, 2}, [&](const DeviceJob& job) {
        if (job.pe == missing)
          return;
        if (op == 0)
          world.notify(job);
        else if (op == 1)
          world.dispatch(job);
        else
          world.combine(job, false);
      });
      EXPECT_EQ(world.kernels().report(0).state, WaitReport::written);
      EXPECT_EQ(world.kernels().report(0).peer, missing) << "call " << op;
    }
}

/// Called by rank 0 of four on two nodes: waits until rank 1 or 2 has begun that call.
void wait_for_begin(InternodeWorld& world, int rank, int number) {
  const moe::InternodeMemory memory = world.memory_of(0);
  const auto epoch = static_cast<std::uint64_t>(number);
  const std::uint64_t* const word = rank == 1 ? &memory.node.flags->entered[1]
                                              : &memory.rails->entered[moe::turn_of_call(epoch)][1];
  HostKernels::wait_for([&] { return device::load_acquire(word) >= epoch; });
}

/// Rank 0 times out before the late rank begins, which all others would wait for: no rank ends the
/// call without a report, each names the late rank, and none waits for its own timeout.
TEST_P(Hybrid, ATimeoutOfOneRankFailsTheCallOnAll) {
  for (const int late : {1, 2}) // a rank of the node, then one of the rail
    for (int op = 1; op < 3; ++op) {
      const moe::InternodeShape shape = internode_shape(4, 2, moe::Format::bf16);
      InternodeWorld world(shape, all_routings(shape.shape)[0].routing, true);
      set_network(world);
      world.kernels().run(InternodeWorld::counting,
                          [&](const DeviceJob& job) { world.notify(job); });
      if (op > 1)
        world.kernels().run({2, 2}, [&](const DeviceJob& job) { world.dispatch(job); });
      world.kernels().job(0).timeout_ns = 500'000'000;
      const auto call = [&](const DeviceJob& job) {
        if (op == 1)
          world.dispatch(job);
        else
          world.combine(job, false);
      };
      const auto begin = std::chrono::steady_clock::now();
      world.kernels().run({2, 2}, [&](const DeviceJob& job) {
        if (job.pe == late)
          world.kernels().wait_for_report(0);
        else if (job.pe == 0)
          wait_for_begin(world, late == 1 ? 2 : 1, op);
        call(job);
      });
      const auto expect_failed = [&](const std::string& where) {
        for (std::int32_t rank = 0; rank < 4; ++rank) {
          EXPECT_EQ(world.kernels().report(rank).state, WaitReport::written) << where << rank;
          EXPECT_EQ(world.kernels().report(rank).peer, late) << where << rank;
        }
      };
      const std::string what = "op " + std::to_string(op) + ", late " + std::to_string(late);
      expect_failed(what + ", rank ");
      // And so does every later call, at once.
      for (std::int32_t rank = 0; rank < 4; ++rank)
        world.kernels().clear_report(rank);
      world.kernels().run({2, 2}, call);
      expect_failed(what + ", the next call, rank ");
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)) << what;
    }
}

/// A rank whose local peer cannot forward rows from another node fails with it.
TEST_P(Hybrid, ARankThatCannotForwardFailsItsNode) {
  const moe::InternodeShape shape = internode_shape(4, 2, moe::Format::bf16);
  InternodeWorld world(shape, all_routings(shape.shape)[0].routing, true);
  set_network(world);
  world.kernels().run(InternodeWorld::counting, [&](const DeviceJob& job) { world.notify(job); });
  world.kernels().job(0).timeout_ns = 500'000'000;
  world.kernels().run({1, 2}, [&](const DeviceJob& job) {
    if (job.pe != 2) {
      if (job.pe == 0) {
        wait_for_begin(world, 1, 1);
        wait_for_begin(world, 2, 1);
      }
      world.dispatch(job);
      return;
    }
    // Begins the call, and ends it, but sends nothing.
    const moe::InternodeMemory memory = world.memory_of(job.pe);
    const moe::Call call(job, memory.node.flags, 2, 2);
    const moe::Rails rails(job, shape, memory, call.epoch());
    call.announce();
    rails.announce();
    call.wait_for_all();
    call.finish(true);
  });
  for (const std::int32_t rank : {0, 1}) {
    EXPECT_EQ(world.kernels().report(rank).state, WaitReport::written) << rank;
    EXPECT_EQ(world.kernels().report(rank).peer, 2) << rank;
  }
}

/// A notify that timed out leaves a plan that sends nothing, also when the late rank has begun in
/// the meantime: no row of it overwrites those of others.
TEST_P(Hybrid, ANotificationThatFailedMovesNothing) {
  for (const int late : {1, 2}) {
    const moe::InternodeShape shape = internode_shape(4, 2, moe::Format::bf16);
    InternodeWorld world(shape, all_routings(shape.shape)[0].routing, true);
    set_network(world);
    world.poison();
    world.kernels().job(0).timeout_ns = 500'000'000;
    world.kernels().run(InternodeWorld::counting, [&](const DeviceJob& job) {
      if (job.pe == late)
        world.kernels().wait_for_report(0);
      for (int source = 1; job.pe == 0 && source < 4; ++source)
        HostKernels::wait_for([&] {
          return source == late ||
                 device::load_acquire(&world.memory_of(0).rails->counts[1][source]) != 0;
        });
      world.notify(job);
    });
    EXPECT_EQ(world.kernels().report(0).peer, late);
    const moe::InternodePlan plan = world.plan_of(0);
    for (std::int32_t i = 0; i < world.token_count(0) * shape.shape.n_ranks; ++i)
      ASSERT_EQ(plan.slots[i], -1) << i;
    for (std::int32_t i = 0; i < shape.shape.n_ranks * shape.n_nodes(); ++i)
      ASSERT_EQ(plan.crossing_counts[i], 0) << i;
    world.kernels().job(0).timeout_ns = world.kernels().job(1).timeout_ns;
    world.kernels().run({2, 2}, [&](const DeviceJob& job) { world.dispatch(job); });
    for (std::int32_t rank = 0; rank < 4; ++rank)
      EXPECT_EQ(world.kernels().report(rank).state, WaitReport::written)
          << "late " << late << ", rank " << rank;
    for (std::int32_t rank = 0; rank < 4; ++rank)
      EXPECT_FALSE(world.has_row_of(0, rank)) << "late " << late << ", rank " << rank;
  }
}

} // namespace
} // namespace shmemctl::test
