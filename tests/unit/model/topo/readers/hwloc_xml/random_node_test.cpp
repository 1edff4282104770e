#include "tests/support/random_node.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "src/model/topo/distance.h"

namespace shmemctl {

TEST(RandomNode, IsWellFormedAndTheSameForTheSameSeed) {
  int with_gpus = 0;
  int with_nics = 0;
  int recorded = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const Node node = test::random_node(random);
    std::mt19937_64 again(seed);
    ASSERT_EQ(first_difference(node, test::random_node(again)), "");
    for (std::size_t i = 0; i < node.pci.size(); ++i) {
      ASSERT_LT(node.pci[i].parent, static_cast<int>(i));
      ASSERT_LT(node.pci[i].host_bridge, static_cast<int>(node.host_bridges.size()));
    }
    for (std::size_t i = 0; i < node.gpus.size(); ++i) {
      ASSERT_EQ(node.gpus[i].index, static_cast<int>(i));
      ASSERT_LT(node.gpus[i].pci, static_cast<int>(node.pci.size()));
    }
    ASSERT_EQ(distance_matrix(node).size(), node.gpus.size() + node.nics.size());
    Node normalized = node;
    normalize(normalized);
    ASSERT_EQ(first_difference(node, normalized), "");
    with_gpus += node.gpus.empty() ? 0 : 1;
    with_nics += node.nics.empty() ? 0 : 1;
    recorded += node.recorded ? 1 : 0;
  }
  EXPECT_GT(std::min({with_gpus, with_nics, recorded}), 20);
}

} // namespace shmemctl
