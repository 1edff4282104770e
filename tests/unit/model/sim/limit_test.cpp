// What limits an operation: a link, or how many alike.
#include <gtest/gtest.h>

#include "src/model/sim/limit.h"
#include "tests/unit/model/sim/sim_world.h"

namespace shmemctl::test {
namespace {

std::string limit_of(const sim::Loads& loads) {
  const auto slowest = loads.slowest();
  return slowest ? limit_name(loads, *slowest) : "";
}

TEST(SimLimit, one_link_is_named) {
  const sim::Cluster cluster = small_cluster(4, 2);
  sim::Loads loads(sim::Group{&cluster, 0, 4});
  EXPECT_EQ(limit_of(loads), "");
  loads.add(0, 2, 1e6);
  loads.add(1, 3, 0.9e6);
  EXPECT_EQ(limit_of(loads), "node 0 mlx5_0/1 out and node 1 mlx5_0/1 in");
  loads.add(4, 2, 0.1e6); // only what node 1 receives is more
  EXPECT_EQ(limit_of(loads), "node 1 mlx5_0/1 in");
}

TEST(SimLimit, what_all_links_do_is_nobodys_fault) {
  const sim::Cluster cluster = small_cluster(4, 2);
  sim::Loads loads(sim::Group{&cluster, 0, 4});
  add_pattern(sim::Pattern::all_to_all, 1e6, loads);
  EXPECT_EQ(limit_of(loads), "every NIC (out and in)");
  // A difference that no text shows is none.
  loads.out[3] *= 1.004;
  EXPECT_EQ(limit_of(loads), "every NIC (out and in)");
  loads.out[3] *= 1.02;
  EXPECT_EQ(limit_of(loads), "node 1 mlx5_1/1 out");
}

TEST(SimLimit, some_of_many_are_counted) {
  const sim::Cluster cluster = small_cluster(4, 2);
  sim::Loads loads(sim::Group{&cluster, 0, 4});
  loads.add(0, 2, 1e6);
  loads.add(2, 4, 1e6);
  loads.add(4, 6, 1e6);
  EXPECT_EQ(limit_of(loads), "4 of 8 NICs (out and in)");
}

TEST(SimLimit, of_switches_and_links_of_gpus) {
  const sim::Cluster cluster = small_cluster(4, 2, {sim::FabricKind::fat_tree, 2, 4});
  sim::Loads loads(sim::Group{&cluster, 0, 4});
  add_pattern(sim::Pattern::all_to_all, 1e6, loads);
  EXPECT_EQ(limit_of(loads), "every leaf switch (up and down)");
  sim::Loads within(sim::Group{&cluster, 0, 1});
  within.add(0, 1, 1e6);
  within.add(1, 0, 1e6);
  EXPECT_EQ(limit_of(within), "the GPU links of every rank (out and in)");
}

} // namespace
} // namespace shmemctl::test
