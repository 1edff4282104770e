// Which NICs a PE hands to its transports.
#include <gtest/gtest.h>

#include "src/runtime/nic_choice.h"
#include "tests/support/node_builder.h"

namespace shmemctl {
namespace {

/// Two switches, each with a NIC, and a GPU if wanted.
Node two_nics(bool gpus) {
  shmemctl::testing::NodeBuilder builder;
  const int host = builder.host_bridge(0);
  for (const char* name : {"mlx5_0", "mlx5_1"}) {
    const int upstream = builder.pcie_switch(host);
    if (gpus)
      builder.gpu(upstream);
    builder.nic(upstream, name);
  }
  return builder.node;
}

std::vector<HcaPort> ports(const Node& node, const MappingRequest& request, std::size_t pe,
                           std::size_t pes) {
  return ports_of_pe(node, map_nics(node, request), pe, pes);
}

MappingRequest request_for(std::vector<int> gpus) {
  MappingRequest request;
  request.gpus = std::move(gpus);
  return request;
}

using Ports = std::vector<HcaPort>;

TEST(NicChoice, APeWithAGpuGetsWhatTheMappingChose) {
  const Node node = two_nics(true);
  const MappingRequest request = request_for({0, 1});
  EXPECT_EQ(ports(node, request, 0, 2), (Ports{{"mlx5_0", 1}}));
  EXPECT_EQ(ports(node, request, 1, 2), (Ports{{"mlx5_1", 1}}));
  EXPECT_EQ(ports(node, request, 2, 2), Ports{});
}

TEST(NicChoice, PesWithoutGpusShareAllNics) {
  const Node node = two_nics(false);
  EXPECT_EQ(ports(node, request_for({-1}), 0, 1), (Ports{{"mlx5_0", 1}, {"mlx5_1", 1}}));
  const MappingRequest three = request_for({-1, -1, -1});
  EXPECT_EQ(ports(node, three, 0, 3), (Ports{{"mlx5_0", 1}}));
  EXPECT_EQ(ports(node, three, 1, 3), (Ports{{"mlx5_1", 1}}));
  EXPECT_EQ(ports(node, three, 2, 3), (Ports{{"mlx5_0", 1}}));
}

TEST(NicChoice, ListsHoldWithoutGpusToo) {
  const Node node = two_nics(false);
  MappingRequest request = request_for({-1});
  request.nvshmem.hca_list = "mlx5_1";
  EXPECT_EQ(ports(node, request, 0, 1), (Ports{{"mlx5_1", 1}}));
  request.nvshmem.hca_list = "^mlx5_0:1";
  EXPECT_EQ(ports(node, request, 0, 1), (Ports{{"mlx5_1", 1}}));
}

TEST(NicChoice, ReportsSayWhatPesWithoutGpusShare) {
  const Node node = two_nics(false);
  const Mapping given = map_nics(node, request_for({-1, -1, -1}));
  ASSERT_TRUE(given.pes[0].nics.empty());
  const Mapping used = mapping_in_use(node, given, 3);
  for (const int pe : {0, 1, 2}) {
    const PeMapping& mine = used.pes[static_cast<std::size_t>(pe)];
    ASSERT_EQ(mine.nics.size(), 1U);
    EXPECT_EQ(mine.nics[0].nic, pe % 2);
    EXPECT_EQ(mine.chosen_by, "shared");
  }
  ASSERT_EQ(used.nics.size(), 2U);
  EXPECT_EQ(used.nics[0].pes, (std::vector<int>{0, 2}));
  EXPECT_DOUBLE_EQ(used.nics[0].load, 2);
  // What the mapping chose for a GPU stays.
  const Node with_gpus = two_nics(true);
  const Mapping chosen = map_nics(with_gpus, request_for({0, 1}));
  const Mapping same = mapping_in_use(with_gpus, chosen, 2);
  EXPECT_EQ(same.pes[1].nics, chosen.pes[1].nics);
  EXPECT_EQ(same.pes[1].chosen_by, chosen.pes[1].chosen_by);
  EXPECT_DOUBLE_EQ(same.load_factor, chosen.load_factor);
}

TEST(NicChoice, NoNicNoChoice) {
  shmemctl::testing::NodeBuilder builder;
  builder.host_bridge(0);
  EXPECT_EQ(ports(builder.node, request_for({-1}), 0, 1), Ports{});
  const Mapping given = map_nics(builder.node, request_for({-1}));
  EXPECT_EQ(mapping_in_use(builder.node, given, 1).pes[0].reason, given.pes[0].reason);
}

} // namespace
} // namespace shmemctl
