// Which NICs a PE passes to its transports.
#include <algorithm>
#include <gtest/gtest.h>
#include <sched.h>

#include "src/runtime/locality.h"
#include "tests/support/node_builder.h"
#include "tests/support/temporary_folder.h"

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

TEST(NicChoice, APeWithAGpuGetsTheMappingsNics) {
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

TEST(NicChoice, ReportsListTheNicsOfPesWithoutGpus) {
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
  // The mapping's choice for a GPU is kept.
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
namespace {

NumaNode numa_node(int index, const std::string& cpus, NumaKind kind = NumaKind::cpu) {
  NumaNode numa;
  numa.os_index = index;
  numa.kind = kind;
  numa.cpus = known(cpus, "test");
  numa.memory_bytes = known(std::uint64_t{1} << 30, "test");
  return numa;
}

/// Two nodes of four CPUs; GPU 0 on the second, GPU 1 on an unknown one.
Node two_nodes() {
  Node node;
  node.numa_nodes = {numa_node(0, "0-1,4-5"), numa_node(1, "2-3,6-7")};
  node.gpus.resize(2);
  node.gpus[0].numa = known(1, "test");
  node.gpus[1].numa = unknown<int>("numa_node reads -1");
  return node;
}

TEST(NumaChoice, TheNodeOfTheBoundCpus) {
  const Node node = two_nodes();
  EXPECT_EQ(choose_numa_node(node, {0}, -1).node, 0);
  EXPECT_EQ(choose_numa_node(node, {0, 5}, -1).node, 0);
  EXPECT_EQ(choose_numa_node(node, {2, 3, 6, 7}, -1).node, 1);
  EXPECT_EQ(choose_numa_node(node, {2, 6}, -1).reason, "the PE is bound to its CPUs (2,6)");
}

TEST(NumaChoice, TheBindingTakesPrecedenceOverTheGpu) {
  EXPECT_EQ(choose_numa_node(two_nodes(), {4}, 0).node, 0);
}

TEST(NumaChoice, TheGpusNodeForAPeThatMayRunAnywhere) {
  const NumaChoice choice = choose_numa_node(two_nodes(), {0, 1, 2, 3, 4, 5, 6, 7}, 0);
  EXPECT_EQ(choice.node, 1);
  EXPECT_NE(choice.reason.find("GPU 0"), std::string::npos) << choice.reason;
  EXPECT_EQ(choose_numa_node(two_nodes(), {}, 0).node, 1); // unknown to the kernel
}

TEST(NumaChoice, NoneWithoutAReason) {
  const Node node = two_nodes();
  for (const int gpu : {-1, 1, 2}) {
    const NumaChoice choice = choose_numa_node(node, {1, 2}, gpu);
    EXPECT_EQ(choice.node, -1);
    EXPECT_NE(choice.reason, "");
  }
  EXPECT_EQ(choose_numa_node(node, {}, -1).node, -1);
  EXPECT_EQ(choose_numa_node(node, {99}, -1).node, -1);
}

TEST(NumaChoice, OneNodeIsNoChoice) {
  Node node = two_nodes();
  node.numa_nodes.resize(1);
  EXPECT_EQ(choose_numa_node(node, {0}, 0).node, -1);
  EXPECT_EQ(choose_numa_node(Node{}, {0}, -1).node, -1);
  node = two_nodes();
  // all memory is on the other NUMA node
  node.numa_nodes[0].memory_bytes = known(std::uint64_t{0}, "test");
  EXPECT_EQ(choose_numa_node(node, {0}, -1).node, -1);
}

TEST(NumaChoice, MemoryOfDevicesIsNotForHeaps) {
  Node node = two_nodes();
  node.numa_nodes.push_back(numa_node(2, "2-3,6-7", NumaKind::other_memory));
  node.numa_nodes.push_back(numa_node(8, "", NumaKind::gpu_memory));
  std::reverse(node.numa_nodes.begin(), node.numa_nodes.end());
  EXPECT_EQ(choose_numa_node(node, {2}, -1).node, 1);
  node.gpus[0].numa = known(8, "test");
  EXPECT_EQ(choose_numa_node(node, {1, 2}, 0).node, -1);
}

TEST(NumaChoice, ReadsTheAffinityMask) {
  TemporaryFolder folder;
  const auto allowed = [&](const std::string& status) {
    folder.write("proc/thread-self/status", status);
    return allowed_cpus(Sysroot(folder.path()));
  };
  EXPECT_EQ(allowed("Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,8\nMems:\t0\n"),
            (CpuSet{0, 1, 2, 3, 8}));
  for (const char* odd : {"", "Cpus_allowed_list:\n", "Cpus_allowed_list:\tmany\n", "Cpus"})
    EXPECT_TRUE(allowed(odd).empty()) << odd;
}

TEST(NumaChoice, ABindingIsSeen) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const CpuSet all = allowed_cpus(Sysroot());
  ASSERT_FALSE(all.empty());
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(all.last()), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(allowed_cpus(Sysroot()), CpuSet{all.last()});
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

} // namespace
} // namespace shmemctl
