#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/model/topo/mapping/mapping.h"
#include "src/model/topo/mapping/ports.h"
#include "tests/support/node_builder.h"

namespace shmemctl {

using shmemctl::testing::NodeBuilder;
using shmemctl::testing::PortSpec;

namespace {

MappingRequest request_for(const Node& node, Policy policy, int pes = -1) {
  MappingRequest request;
  request.policy = policy;
  request.gpus = assign_gpus(node, pes, {});
  return request;
}

/// The first NIC of each PE.
std::vector<int> first_nics(const Mapping& mapping) {
  std::vector<int> nics;
  for (const PeMapping& pe : mapping.pes)
    nics.push_back(pe.nics.empty() ? -1 : pe.nics[0].nic);
  return nics;
}

std::vector<std::string> names(const Node& node, const std::vector<NicUse>& ports) {
  std::vector<std::string> result;
  for (const NicUse& use : ports)
    result.push_back(node.nics[static_cast<std::size_t>(use.nic)].name + "/" +
                     std::to_string(use.port));
  return result;
}

Node h20_with_five_nics() {
  return NodeBuilder::from_matrix({"ibp14s0", "ibp71s0", "ibp134s0", "ibp195s0", "rocep32s0f0"},
                                  {{"PIX", "NODE", "SYS", "SYS", "NODE"},
                                   {"NODE", "NODE", "SYS", "SYS", "NODE"},
                                   {"NODE", "PIX", "SYS", "SYS", "NODE"},
                                   {"NODE", "NODE", "SYS", "SYS", "NODE"},
                                   {"SYS", "SYS", "PIX", "NODE", "SYS"},
                                   {"SYS", "SYS", "NODE", "NODE", "SYS"},
                                   {"SYS", "SYS", "NODE", "PIX", "SYS"},
                                   {"SYS", "SYS", "NODE", "NODE", "SYS"}});
}

using Names = std::vector<std::string>;
using Ints = std::vector<int>;

} // namespace

TEST(AssignGpus, OnePePerGpuByDefault) {
  const Node node = NodeBuilder::hgx(4).node;
  EXPECT_EQ(assign_gpus(node, -1, {}), (Ints{0, 1, 2, 3}));
  EXPECT_EQ(assign_gpus(node, -1, {3, 1}), (Ints{3, 1}));
  EXPECT_EQ(assign_gpus(node, 6, {}), (Ints{0, 1, 2, 3, 0, 1}));
  EXPECT_EQ(assign_gpus(node, 3, {2, 0}), (Ints{2, 0, 2}));
  EXPECT_EQ(assign_gpus(Node{}, 2, {}), (Ints{-1, -1}));
  EXPECT_TRUE(assign_gpus(Node{}, -1, {}).empty());
}

TEST(AssignGpus, RefusesAGpuThatDoesNotExist) {
  const Node node = NodeBuilder::hgx(4).node;
  EXPECT_THROW(assign_gpus(node, -1, {4}), Error);
  EXPECT_THROW(assign_gpus(node, -1, {-1}), Error);
  EXPECT_THROW(assign_gpus(Node{}, -1, {0}), Error);
}

TEST(UsablePorts, LeavesOutDownPortsPlainNicsAndEmulatedDevices) {
  NodeBuilder builder;
  const int host = builder.host_bridge(0);
  builder.nic_at_root(host, "mlx5_0", {{1, PortState::down}, {2, PortState::active}});
  builder.nic_at_root(host, "mlx5_1", {{1, PortState::init}});
  builder.nic_at_root(host, "mlx5_2", {});
  builder.nic_at_root(host, "rxe0");
  builder.plain_nic(host, "eno1");
  builder.node.nics[3].virtual_device = true;
  EXPECT_EQ(names(builder.node, usable_ports(builder.node)), (Names{"mlx5_0/2", "mlx5_2/1"}));
}

TEST(UsablePorts, EmulatedDevicesCountWhereNothingElseIs) {
  NodeBuilder builder;
  builder.nic_at_root(builder.host_bridge(0), "rxe0");
  builder.node.nics[0].virtual_device = true;
  EXPECT_EQ(names(builder.node, usable_ports(builder.node)), (Names{"rxe0/1"}));
}

TEST(FabricPorts, TheGroupWithTheLargestTotalRate) {
  NodeBuilder builder = NodeBuilder::hgx(8);
  const int host = builder.host_bridge(0);
  const PortSpec management{1, PortState::active, LinkLayer::ethernet, 25};
  builder.nic_at_root(host, "mlx5_8", {management});
  builder.nic_at_root(host, "mlx5_9", {management});
  EXPECT_EQ(fabric_ports(builder.node).size(), 8U);
  EXPECT_EQ(usable_ports(builder.node).size(), 10U);
}

TEST(FabricPorts, OfOneLayerTheRateDecides) {
  NodeBuilder builder;
  const int host = builder.host_bridge(0);
  for (int i = 0; i < 3; ++i)
    builder.nic_at_root(host, "mlx5_" + std::to_string(i),
                        {{1, PortState::active, LinkLayer::ethernet, 25}});
  builder.nic_at_root(host, "mlx5_3", {{1, PortState::active, LinkLayer::ethernet, 400}});
  builder.pci(builder.node.nics[3].pci).device = known(std::uint16_t{0x1023}, "built");
  EXPECT_EQ(names(builder.node, fabric_ports(builder.node)), (Names{"mlx5_3/1"}));
}

TEST(FabricPorts, ASlowMemberOfTheSameModelStays) {
  NodeBuilder builder = NodeBuilder::hgx(8);
  builder.node.nics[3].ports[0].rate_Gbps = known(200.0, "built");
  EXPECT_EQ(fabric_ports(builder.node).size(), 8U);
}

TEST(FabricPorts, NumbersDecideWhereARateIsUnknown) {
  NodeBuilder builder = NodeBuilder::hgx(8);
  builder.node.nics[3].ports[0].rate_Gbps = unknown<double>("unreadable");
  builder.nic_at_root(builder.host_bridge(0), "mlx5_8",
                      {{1, PortState::active, LinkLayer::ethernet, 100000}});
  EXPECT_EQ(fabric_ports(builder.node).size(), 8U);
}

TEST(FabricPorts, NamesTellTheLayerWhereNothingElseDoes) {
  const Node node = h20_with_five_nics();
  EXPECT_EQ(names(node, fabric_ports(node)),
            (Names{"ibp14s0/1", "ibp71s0/1", "ibp134s0/1", "ibp195s0/1"}));
}

TEST(FabricPorts, NothingKnownMeansAll) {
  const Node node = NodeBuilder::from_matrix({"mlx5_0", "mlx5_1"}, {{"PIX", "PXB"}});
  EXPECT_EQ(fabric_ports(node).size(), 2U);
}

TEST(Optimal, OnePairPerSwitchIsTheIdentity) {
  const Node node = NodeBuilder::hgx(8).node;
  Mapping mapping = map_optimal(node, request_for(node, Policy::optimal));
  EXPECT_EQ(first_nics(mapping), (Ints{0, 1, 2, 3, 4, 5, 6, 7}));
  fill_loads(node, mapping);
  EXPECT_DOUBLE_EQ(mapping.load_factor, 1.0);
  EXPECT_EQ(mapping.pes[5].nics[0].distance.path, PathClass::pix);
}

TEST(Optimal, H20TwoGpusPerInfinibandNic) {
  const Node node = h20_with_five_nics();
  Mapping mapping = map_optimal(node, request_for(node, Policy::optimal));
  fill_loads(node, mapping);
  EXPECT_EQ(first_nics(mapping), (Ints{0, 0, 1, 1, 2, 2, 3, 3}));
  for (const NicLoad& load : mapping.nics)
    EXPECT_DOUBLE_EQ(load.load, 2.0);
}

TEST(Optimal, A100WithEightNumaNodesLeavesTheFarNicsAlone) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> nics;
  for (std::size_t gpu = 0; gpu < 8; ++gpu) {
    rows.emplace_back(10, "SYS");
    rows.back()[gpu / 2 * 2] = rows.back()[gpu / 2 * 2 + 1] = "PXB";
  }
  for (int i = 0; i < 10; ++i)
    nics.push_back("mlx5_" + std::to_string(i));
  const Node node = NodeBuilder::from_matrix(nics, rows);
  EXPECT_EQ(first_nics(map_optimal(node, request_for(node, Policy::optimal))),
            (Ints{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Optimal, BalanceHasPriorityOverDistance) {
  // Two GPUs and one NIC on the first socket, one NIC on the second, and no switches: nothing
  // indicates which NIC is for GPUs.
  NodeBuilder builder;
  const int host = builder.host_bridge(0);
  builder.gpu_at_root(host);
  builder.gpu_at_root(host);
  builder.nic_at_root(host, "mlx5_0");
  builder.nic_at_root(builder.host_bridge(1), "mlx5_1");
  EXPECT_EQ(first_nics(map_optimal(builder.node, request_for(builder.node, Policy::optimal))),
            (Ints{0, 1}));
}

TEST(Optimal, KeepsStorageNicsOut) {
  // With a switch, too, the NIC of the other socket is not for these GPUs.
  NodeBuilder builder;
  const int near_switch = builder.pcie_switch(builder.host_bridge(0));
  builder.gpu(near_switch);
  builder.gpu(near_switch);
  builder.nic(near_switch, "mlx5_0");
  builder.nic_at_root(builder.host_bridge(1), "mlx5_1");
  EXPECT_EQ(first_nics(map_optimal(builder.node, request_for(builder.node, Policy::optimal))),
            (Ints{0, 0}));
}

TEST(Optimal, KeepsToWhatTheUserLeaves) {
  const Node node = NodeBuilder::hgx(3).node;
  MappingRequest request = request_for(node, Policy::optimal);
  request.nvshmem.hca_list = "^mlx5_1";
  for (const PeMapping& pe : map_optimal(node, request).pes)
    EXPECT_NE(pe.nics[0].nic, 1);
}

TEST(Optimal, CrossingsDecideBetweenEqualDistances) {
  Node node = NodeBuilder::from_matrix({"a", "b"}, {{"SYS", "SYS"}, {"SYS", "SYS"}});
  node.gpus[0].numa = known(1, "built");
  node.gpus[1].numa = known(0, "built");
  node.nics[0].numa = known(0, "built");
  node.nics[1].numa = known(1, "built");
  EXPECT_EQ(first_nics(map_optimal(node, request_for(node, Policy::optimal))), (Ints{1, 0}));
}

TEST(Optimal, SeveralNicsPerPeOnlyWithIbgdaMultiPort) {
  const Node node = NodeBuilder::hgx(4, 2, 4).node; // 8 GPUs, 16 NICs
  MappingRequest request = request_for(node, Policy::optimal);
  request.nvshmem.ibgda_multi_port = true;
  EXPECT_EQ(map_optimal(node, request).pes[0].nics.size(), 1U);
  request.nvshmem.transport = NvshmemTransport::ibgda;
  Mapping mapping = map_optimal(node, request);
  fill_loads(node, mapping);
  for (const PeMapping& pe : mapping.pes) {
    ASSERT_EQ(pe.nics.size(), 2U);
    EXPECT_EQ(pe.used, 2);
    EXPECT_FALSE(pe.nics[0] == pe.nics[1]);
    EXPECT_EQ(pe.nics[0].nic / 4, pe.gpu / 2);
  }
  EXPECT_DOUBLE_EQ(mapping.load_factor, 1.0);
}

TEST(Optimal, WithoutNicsSaysWhy) {
  NodeBuilder builder;
  builder.gpu_at_root(builder.host_bridge(0));
  const Mapping mapping = map_optimal(builder.node, request_for(builder.node, Policy::optimal));
  ASSERT_EQ(mapping.pes.size(), 1U);
  EXPECT_TRUE(mapping.pes[0].nics.empty());
  EXPECT_EQ(mapping.pes[0].used, 0);
  EXPECT_FALSE(mapping.pes[0].reason.empty());
}

TEST(Optimal, SixtyFourByFromSixtyFour) {
  const Node node = NodeBuilder::hgx(16, 4, 4).node;
  Mapping mapping = map_optimal(node, request_for(node, Policy::optimal));
  fill_loads(node, mapping);
  EXPECT_DOUBLE_EQ(mapping.load_factor, 1.0);
  EXPECT_EQ(score(node, mapping).distance, 0);
  Ints identity(64);
  for (int i = 0; i < 64; ++i)
    identity[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(first_nics(mapping), identity);
}

TEST(Nccl, NearestByPathType) {
  const Node node = NodeBuilder::hgx(8).node;
  const Mapping mapping = map_nccl(node, request_for(node, Policy::nccl));
  EXPECT_EQ(first_nics(mapping), (Ints{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Nccl, EqualNetsAreSharedOutByGpuNumber) {
  const Node node = NodeBuilder::hgx(4, 2, 2).node;
  EXPECT_EQ(first_nics(map_nccl(node, request_for(node, Policy::nccl))),
            (Ints{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Nccl, SeveralNetsPerGpuFollowTheChannels) {
  const Node node = NodeBuilder::hgx(2, 2, 4).node; // 2 GPUs and 4 NICs per switch
  const Mapping mapping = map_nccl(node, request_for(node, Policy::nccl));
  // Mirrored bits of 1 among 4 are 2: GPU 0 starts at net 0, GPU 1 at net 2.
  ASSERT_EQ(mapping.pes[0].nics.size(), 2U);
  EXPECT_EQ(mapping.pes[0].nics[0].nic, 0);
  EXPECT_EQ(mapping.pes[0].nics[1].nic, 1);
  EXPECT_EQ(mapping.pes[1].nics[0].nic, 2);
  EXPECT_EQ(mapping.pes[1].nics[1].nic, 3);
  EXPECT_EQ(mapping.pes[3].nics[0].nic, 6);
  EXPECT_EQ(mapping.pes[0].used, 2);
}

TEST(Nccl, NodeIsAsNearAsPhb) {
  const Node node = NodeBuilder::from_matrix({"a", "b"}, {{"NODE", "PHB"}, {"NODE", "PHB"}});
  EXPECT_EQ(first_nics(map_nccl(node, request_for(node, Policy::nccl))), (Ints{0, 1}));
}

TEST(Nccl, UnknownDistancesGiveNoMapping) {
  const Node node = NodeBuilder::from_matrix({"a", "b"}, {{"?", "?"}, {"?", "SYS"}});
  const Mapping mapping = map_nccl(node, request_for(node, Policy::nccl));
  EXPECT_EQ(first_nics(mapping), (Ints{-1, 1}));
  EXPECT_NE(mapping.pes[0].reason.find("GPU 0"), std::string::npos);
}

TEST(Nccl, APeWithoutGpuHasNone) {
  NodeBuilder builder;
  builder.nic_at_root(builder.host_bridge(0), "mlx5_0");
  const Mapping mapping = map_nccl(builder.node, request_for(builder.node, Policy::nccl, 1));
  EXPECT_TRUE(mapping.pes[0].nics.empty());
  EXPECT_FALSE(mapping.pes[0].reason.empty());
}

TEST(Loads, SpreadOverTheUsedNicsOnly) {
  const Node node = NodeBuilder::hgx(4).node;
  Mapping mapping;
  mapping.request = request_for(node, Policy::nvshmem);
  mapping.table.entries = {{0, 1}, {1, 1}, {1, 1}, {2, 1}};
  mapping.table_nics = {0, 1, 2, 3};
  mapping.pes.push_back({0, 0, {{0, 1, {}}, {1, 1, {}}}, 1, "distance", ""});
  mapping.pes.push_back({1, 1, {{1, 1, {}}, {1, 1, {}}, {2, 1, {}}}, 3, "distance", ""});
  mapping.pes.push_back({2, 2, {}, 0, "distance", "no device"});
  fill_loads(node, mapping);
  ASSERT_EQ(mapping.nics.size(),
            3U); // the replica is no NIC of its own; mlx5_3 is not in the table
  EXPECT_DOUBLE_EQ(mapping.nics[0].load, 1.0);
  EXPECT_DOUBLE_EQ(mapping.nics[1].load, 2.0 / 3); // named twice by PE 1
  EXPECT_DOUBLE_EQ(mapping.nics[2].load, 1.0 / 3);
  EXPECT_EQ(mapping.nics[1].pes, (Ints{1}));
  EXPECT_DOUBLE_EQ(mapping.load_factor, 1.5);
  EXPECT_DOUBLE_EQ(mapping.nics[1].load_factor, 1.0);
}

TEST(Loads, IncludeANicThatIsUsedThoughNotEligible) {
  NodeBuilder builder = NodeBuilder::hgx(2);
  builder.node.nics[1].ports[0].state = known(PortState::down, "built");
  Mapping mapping;
  mapping.request = request_for(builder.node, Policy::nccl);
  mapping.pes.push_back({0, 0, {{1, 1, {}}}, 1, "nccl", ""});
  fill_loads(builder.node, mapping);
  ASSERT_EQ(mapping.nics.size(), 2U);
  EXPECT_EQ(mapping.nics[1].nic, 1);
  EXPECT_DOUBLE_EQ(mapping.nics[1].load, 1.0);
}

TEST(Loads, WithoutPesThereIsNone) {
  const Node node = NodeBuilder::hgx(2).node;
  Mapping mapping;
  mapping.request.policy = Policy::optimal;
  fill_loads(node, mapping);
  EXPECT_EQ(mapping.load_factor, 0);
  EXPECT_EQ(mapping.nics.size(), 2U);
}

} // namespace shmemctl
