// Dispatch and combine across nodes on threads of the host: the kernels' own code, with a network
// that is a copy, verified against the oracle. SHMEMCTL_MUTATE_MOE_*: device_mutants.sh.
#include <gtest/gtest.h>

#include "tests/gpu/moe_routings.h"
#include "tests/support/hybrid_world.h"

namespace shmemctl::test {
namespace {

moe::HybridShape shape_of(std::int32_t n_ranks, std::int32_t node_ranks, moe::Format format,
                          std::int32_t max_tokens = 21) {
  moe::HybridShape shape{};
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

void expect_right(HybridWorld& world, std::int32_t n_ranks, bool with_bias,
                  const std::string& where) {
  world.poison();
  world.kernels().run(HybridWorld::counting, [&](const DeviceJob& job) { world.notify(job); });
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

TEST(Hybrid, EveryBitOfEveryRow) {
  for (const auto& [n_ranks, node_ranks] : {std::pair{4, 2}, {2, 1}, {3, 1}, {6, 2}, {4, 4}})
    for (const moe::Format format : {moe::Format::bf16, moe::Format::fp8}) {
      const moe::HybridShape shape = shape_of(n_ranks, node_ranks, format);
      for (const NamedRouting& routing : all_routings(shape.shape)) {
        HybridWorld world(shape, routing.routing, true);
        expect_right(world, n_ranks, format == moe::Format::bf16,
                     std::to_string(n_ranks) + " ranks, " + std::to_string(node_ranks) +
                         " on a node, " + routing.name);
      }
    }
}

TEST(Hybrid, MoreRanksThanANodeHas) {
  for (const auto& [n_ranks, node_ranks] : {std::pair{16, 8}, {12, 1}}) {
    const moe::HybridShape shape = shape_of(n_ranks, node_ranks, moe::Format::bf16, 5);
    for (const bool by_network : {true, false}) {
      HybridWorld world(shape, all_routings(shape.shape)[0].routing, by_network);
      expect_right(world, n_ranks, false,
                   std::to_string(n_ranks) + " ranks, " + std::to_string(node_ranks) +
                       (by_network ? " on a node" : " on a node, mapped"));
    }
  }
}

TEST(Hybrid, WeightsComeHome) {
  for (const auto& [n_ranks, node_ranks] : {std::pair{4, 2}, {3, 1}, {6, 2}, {4, 4}}) {
    moe::HybridShape shape = shape_of(n_ranks, node_ranks, moe::Format::bf16);
    shape.weights_home = true;
    for (const std::int32_t top_k : {3, 4}) { // not a multiple of 16 bytes, and one
      shape.shape.top_k = top_k;
      for (const NamedRouting& routing : all_routings(shape.shape)) {
        HybridWorld world(shape, routing.routing, true);
        expect_right(world, n_ranks, false,
                     std::to_string(n_ranks) + " ranks, " + std::to_string(node_ranks) +
                         " on a node, top " + std::to_string(top_k) + ", " + routing.name);
      }
    }
  }
}

/// From a row to all rows at once, another number in each direction, in the same memory: words of
/// chunks that were others before must not be taken for those of this call.
TEST(Hybrid, ChunksOfAnyNumberOfRows) {
  for (const auto& [n_ranks, node_ranks] : {std::pair{4, 2}, {3, 1}}) {
    const moe::HybridShape shape = shape_of(n_ranks, node_ranks, moe::Format::bf16);
    for (const NamedRouting& routing : all_routings(shape.shape)) {
      HybridWorld world(shape, routing.routing, true);
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

/// Where kernels load and store everywhere, what crosses goes so too.
TEST(Hybrid, NodesThatMapEachOther) {
  const moe::HybridShape shape = shape_of(4, 2, moe::Format::bf16);
  HybridWorld world(shape, all_routings(shape.shape)[0].routing, false);
  expect_right(world, 4, false, "mapped");
}

/// Calls in a row, as a stream makes them: a rank may be a call ahead of another one. All memory is
/// used again; the results of the last call must be right. Two of a kind behind each other: else a
/// call of the other kind lies between, which hears of the rail too.
void call_in_a_row(HybridWorld& world) {
  constexpr int pairs = 6;
  world.run_experts(); // what comes out of them is the same each time
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
TEST(Hybrid, CallsInARow) {
  const moe::HybridShape shape = shape_of(4, 2, moe::Format::bf16, 9);
  HybridWorld world(shape, all_routings(shape.shape)[0].routing, true);
  call_in_a_row(world);
}
/// The sender has nothing to wait for but what it must wait for.
TEST(Hybrid, CallsInARowOfOneSender) {
  const moe::HybridShape shape = shape_of(4, 2, moe::Format::bf16, 60);
  HybridWorld world(shape, all_routings(shape.shape)[2].routing, true);
  call_in_a_row(world);
}

TEST(Hybrid, ARankThatDoesNotComeIsNamed) {
  for (const int missing : {1, 2}) // of the node, of the rail
    for (int op = 0; op < 3; ++op) {
      const moe::HybridShape shape = shape_of(4, 2, moe::Format::bf16);
      HybridWorld world(shape, all_routings(shape.shape)[0].routing, true, 0.2);
      if (op > 0)
        world.kernels().run(HybridWorld::counting,
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

} // namespace
} // namespace shmemctl::test
