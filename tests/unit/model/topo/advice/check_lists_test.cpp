// Findings about NVSHMEM's lists.
#include <gtest/gtest.h>

#include "tests/unit/model/topo/advice/mapping_requests.h"

namespace shmemctl {

TEST(MappingIgnored, BothListsSet) {
  const Node node = NodeBuilder::hgx(8).node;
  MappingRequest request = with_pe_mapping(node, all_eight);
  request.nvshmem.hca_list = "^mlx5_9";
  const Findings findings = checked(node, request);
  ASSERT_NE(find(findings, "mapping-ignored"), nullptr) << ids(findings);
  EXPECT_EQ(find(findings, "mapping-ignored")->fix, "unset NVSHMEM_HCA_LIST");
  request.nvshmem.hca_list.reset();
  EXPECT_EQ(ids(checked(node, request)), "");
}

TEST(MappingIgnored, AReleaseThatNeverReadsIt) {
  const Node node = NodeBuilder::hgx(8).node;
  MappingRequest request = with_pe_mapping(node, all_eight);
  request.nvshmem.version = {2, 10, 1};
  EXPECT_TRUE(contains(find(checked(node, request), "mapping-ignored")->message, "2.10.1"));
}

TEST(MappingNotPinned, WithoutTheSwitchItOnlyFilters) {
  const Node node = NodeBuilder::hgx(8).node;
  const Findings findings = checked(node, with_pe_mapping(node, all_eight, false));
  EXPECT_EQ(ids(findings), "mapping-not-pinned(warning)");
  EXPECT_EQ(findings[0].fix, "export NVSHMEM_ENABLE_NIC_PE_MAPPING=1");
}

TEST(MappingOrder, TheWrittenOrderHasNoEffect) {
  NodeBuilder builder;
  const int tree = builder.pcie_switch(builder.host_bridge(0));
  for (const char* nic : {"mlx5_0", "mlx5_1"}) {
    builder.gpu(tree);
    builder.nic(tree, nic);
  }
  const Findings findings =
      checked(builder.node, with_pe_mapping(builder.node, "mlx5_1:1:1,mlx5_0:1:1"));
  const Finding* order = find(findings, "mapping-order");
  ASSERT_NE(order, nullptr) << ids(findings);
  EXPECT_TRUE(contains(order->message, "PE 0 gets mlx5_0/1 and not mlx5_1/1")) << order->message;
  EXPECT_TRUE(contains(order->fix, "(mlx5_1:1 mlx5_0:1)")) << order->fix;
}

TEST(MappingOrder, AnOrderWithLongerPathsIsNoFix) {
  const Node node = NodeBuilder::hgx(2).node;
  const Findings findings = checked(node, with_pe_mapping(node, "mlx5_1:1:1,mlx5_0:1:1"));
  EXPECT_EQ(ids(findings), "mapping-order(warning)");
  EXPECT_EQ(findings[0].fix, "export NVSHMEM_HCA_PE_MAPPING=mlx5_0:1:1,mlx5_1:1:1");
}

TEST(MappingOrder, NotForAFilterAndNotInOrder) {
  const Node node = NodeBuilder::hgx(4).node;
  EXPECT_EQ(find(checked(node, with_list(node, "mlx5_3,mlx5_2,mlx5_1,mlx5_0")), "mapping-order"),
            nullptr);
  EXPECT_EQ(
      find(checked(node, with_pe_mapping(node, "mlx5_0,mlx5_1,mlx5_2,mlx5_3")), "mapping-order"),
      nullptr);
}

TEST(MappingCount, UnderAndOver) {
  const Node node = NodeBuilder::hgx(4).node;
  const Findings under = checked(node, with_pe_mapping(node, "mlx5_0:1:1,mlx5_1:1:1"));
  ASSERT_NE(find(under, "mapping-count"), nullptr);
  EXPECT_TRUE(contains(find(under, "mapping-count")->message, "add up to 2 for 4 PEs"));
  const Findings over =
      checked(node, with_pe_mapping(node, "mlx5_0:1:2,mlx5_1:1:2,mlx5_2:1:2,mlx5_3:1:2"));
  ASSERT_NE(find(over, "mapping-count"), nullptr);
  EXPECT_TRUE(contains(find(over, "mapping-count")->message, "add up to 8 for 4 PEs"));
  // PEs that are not pinned choose among all devices by distance.
  for (const char* list : {"mlx5_0:1:1,mlx5_1:1:1", "mlx5_0:1:2,mlx5_1:1:2,mlx5_2:1:2"})
    EXPECT_EQ(find(checked(node, with_pe_mapping(node, list, false)), "mapping-count"), nullptr)
        << list;
  const Findings exact = checked(node, with_pe_mapping(node, "mlx5_0,mlx5_1,mlx5_2,mlx5_3"));
  EXPECT_EQ(ids(exact), "");
}

TEST(MappingCount, MoreRowsThanNvshmemHolds) {
  const Node node = NodeBuilder::hgx(4).node;
  const Findings findings = checked(node, with_pe_mapping(node, "mlx5_0:1:40"));
  EXPECT_EQ(find(findings, "mapping-count")->severity, Severity::error);
}

TEST(MappingDuplicate, TheLastCountWins) {
  const Node node = NodeBuilder::hgx(4).node;
  const Findings findings =
      checked(node, with_pe_mapping(node, "mlx5_0:1:1,mlx5_0:1:2,mlx5_1,mlx5_2"));
  const Finding* twice = find(findings, "mapping-duplicate");
  ASSERT_NE(twice, nullptr) << ids(findings);
  EXPECT_EQ(twice->severity, Severity::warning);
  // Three rows of mlx5_0 would exceed the limit, and mlx5_3 would still be idle.
  EXPECT_EQ(twice->fix, "unset NVSHMEM_HCA_PE_MAPPING NVSHMEM_ENABLE_NIC_PE_MAPPING");
  EXPECT_EQ(find(findings, "nic-hotspot")->fix, twice->fix);
}

TEST(MappingDuplicate, TwoPortsOfOneDeviceAreNone) {
  NodeBuilder builder;
  const int tree = builder.pcie_switch(builder.host_bridge(0));
  builder.gpu(tree);
  builder.gpu(tree);
  builder.nic(tree, "mlx5_0", {{1}, {2}});
  const Findings findings =
      checked(builder.node, with_pe_mapping(builder.node, "mlx5_0:1,mlx5_0:2"));
  EXPECT_EQ(ids(findings), "");
}

TEST(MappingMalformed, SaysTheColumn) {
  const Node node = NodeBuilder::hgx(4).node;
  const Findings findings = checked(node, with_list(node, "mlx5_0,mlx5_1, mlx5_2,mlx5_3"));
  const Finding* malformed = find(findings, "mapping-malformed");
  ASSERT_NE(malformed, nullptr) << ids(findings);
  EXPECT_EQ(malformed->severity, Severity::error); // mlx5_2 is lost
  EXPECT_TRUE(contains(malformed->message, "column 15")) << malformed->message;
  EXPECT_EQ(malformed->fix, "export NVSHMEM_HCA_LIST=mlx5_0,mlx5_1,mlx5_2,mlx5_3");
  EXPECT_EQ(find(findings, "hca-unknown"), nullptr);
}

TEST(MappingMalformed, OnANodeWithoutGpus) {
  NodeBuilder builder;
  builder.nic_at_root(builder.host_bridge(0), "mlx5_0");
  const Findings findings = checked(builder.node, with_list(builder.node, " mlx5_0"));
  EXPECT_EQ(ids(findings), "mapping-malformed(error)");
  EXPECT_EQ(findings[0].fix, "export NVSHMEM_HCA_LIST=mlx5_0");
}

TEST(MappingMalformed, AnEmptyItemIsNotWorse) {
  const Node node = NodeBuilder::hgx(2).node;
  EXPECT_EQ(ids(checked(node, with_list(node, "mlx5_0,mlx5_1,"))), "mapping-malformed(info)");
  EXPECT_EQ(ids(checked(node, with_list(node, "mlx5_0,mlx5_1"))), "");
}

TEST(HcaUnknown, WithTheNearestSpelling) {
  const Node node = NodeBuilder::hgx(4).node;
  const Findings findings = checked(node, with_list(node, "mlx5_0,mlx5_1,mlx5_2,mlx_3"));
  const Finding* unknown_name = find(findings, "hca-unknown");
  ASSERT_NE(unknown_name, nullptr) << ids(findings);
  EXPECT_EQ(unknown_name->severity, Severity::error);
  EXPECT_TRUE(contains(unknown_name->message, "mlx_3 (column 22), did you mean mlx5_3?"))
      << unknown_name->message;
  EXPECT_EQ(unknown_name->fix, "export NVSHMEM_HCA_LIST=mlx5_0,mlx5_1,mlx5_2,mlx5_3");
}

TEST(HcaUnknown, ADifferentNumberIsNotATypo) {
  const Node node = NodeBuilder::hgx(4).node;
  const Findings findings = checked(node, with_list(node, "mlx5_2,mlx5_11"));
  EXPECT_TRUE(contains(find(findings, "hca-unknown")->message, "did you mean mlx5_1?"));
  // The corrected list, mlx5_2 alone, would leave the other NICs idle.
  EXPECT_EQ(find(findings, "hca-unknown")->fix, "unset NVSHMEM_HCA_LIST");
}

TEST(HcaUnknown, ExcludingAStrangerIsAWarning) {
  const Node node = NodeBuilder::hgx(4).node;
  EXPECT_EQ(ids(checked(node, with_list(node, "^ibp12s0"))), "hca-unknown(warning)");
}

TEST(HcaUnknown, ADeviceThatThePrefixHides) {
  NodeBuilder builder = NodeBuilder::hgx(2);
  for (Nic& nic : builder.node.nics)
    nic.name = "ibp" + nic.name.substr(5) + "s0";
  MappingRequest request = with_list(builder.node, "ibp0s0,ibp1s0");
  request.nvshmem.transport = NvshmemTransport::ibgda;
  request.nvshmem.version = {3, 4, 5};
  const Findings findings = checked(builder.node, request);
  const Finding* unknown_name = find(findings, "hca-unknown");
  ASSERT_NE(unknown_name, nullptr) << ids(findings);
  EXPECT_TRUE(contains(unknown_name->message, "NVSHMEM_HCA_PREFIX")) << unknown_name->message;
}

TEST(PortUnknown, APortThatTheDeviceDoesNotHave) {
  const Node node = NodeBuilder::hgx(2).node;
  const Findings findings = checked(node, with_list(node, "mlx5_0:1,mlx5_1:2"));
  const Finding* port = find(findings, "port-unknown");
  ASSERT_NE(port, nullptr) << ids(findings);
  EXPECT_EQ(port->severity, Severity::error);
  EXPECT_EQ(port->subject, "mlx5_1/2");
  EXPECT_EQ(find(checked(node, with_list(node, "mlx5_0:1,mlx5_1:1")), "port-unknown"), nullptr);
}

TEST(PortUnknown, TheOnlyPortIsTheOneThatWasMeant) {
  const Node node = NodeBuilder::hgx(2).node;
  const Findings findings = checked(node, with_pe_mapping(node, "mlx5_0:1:1,mlx5_1:2:1"));
  const Finding* port = find(findings, "port-unknown");
  ASSERT_NE(port, nullptr) << ids(findings);
  EXPECT_EQ(port->fix, "export NVSHMEM_HCA_PE_MAPPING=mlx5_0:1:1,mlx5_1:1:1");
}

TEST(NicNotRdma, AListThatNamesAnInterface) {
  NodeBuilder builder = NodeBuilder::hgx(2);
  builder.plain_nic(builder.host_bridge(0), "eno1");
  builder.node.nics[1].ports[0].netdev = known(std::string("ibs1"), "built");
  const Findings findings = checked(builder.node, with_list(builder.node, "mlx5_0,ibs1,eno1"));
  const Finding* plain = find(findings, "nic-not-rdma");
  ASSERT_NE(plain, nullptr) << ids(findings);
  EXPECT_TRUE(contains(plain->message, "ibs1 is the network interface of mlx5_1"));
  EXPECT_TRUE(contains(plain->message, "eno1 is no RDMA device"));
  EXPECT_EQ(plain->fix, "export NVSHMEM_HCA_LIST=mlx5_0,mlx5_1");
}

TEST(MappingEmpty, AListOrAPrefixThatLeavesNothing) {
  NodeBuilder builder = NodeBuilder::hgx(2);
  const Findings excluded = checked(builder.node, with_list(builder.node, "^mlx5_0,mlx5_1"));
  EXPECT_EQ(ids(excluded), "mapping-empty(error)");
  EXPECT_EQ(excluded[0].fix, "unset NVSHMEM_HCA_LIST");
  for (Nic& nic : builder.node.nics)
    nic.name = "ibp" + nic.name.substr(5) + "s0";
  MappingRequest request = request_for(builder.node);
  request.nvshmem.transport = NvshmemTransport::ibgda;
  request.nvshmem.version = {3, 4, 5};
  const Findings hidden = checked(builder.node, request);
  EXPECT_EQ(ids(hidden), "mapping-empty(error)");
  EXPECT_EQ(hidden[0].fix, "export NVSHMEM_HCA_PREFIX=ibp");
}

namespace {

Node with_ibp_names(int pairs) {
  NodeBuilder builder = NodeBuilder::hgx(pairs);
  for (Nic& nic : builder.node.nics)
    nic.name = "ibp" + nic.name.substr(5) + "s0";
  return builder.node;
}

MappingRequest with_ibgda(const Node& node, NvshmemVersion version) {
  MappingRequest request = request_for(node);
  request.nvshmem.transport = NvshmemTransport::ibgda;
  request.nvshmem.version = version;
  return request;
}

} // namespace

TEST(MappingEmpty, BeforeThePrefixExistedNoneIsSet) {
  const Node node = with_ibp_names(2);
  const Findings findings = checked(node, with_ibgda(node, {3, 3, 20}));
  EXPECT_EQ(ids(findings), "mapping-empty(error)");
  EXPECT_EQ(findings[0].fix, "unset NVSHMEM_IB_ENABLE_IBGDA");
  MappingRequest deepep = with_ibgda(node, {3, 3, 20});
  deepep.world = World::deepep_ll; // DeepEP does not let IBGDA be switched off
  const Finding empty = *find(checked(node, deepep), "mapping-empty");
  EXPECT_FALSE(contains(empty.fix, "export")) << empty.fix;
  EXPECT_TRUE(contains(empty.fix, "3.4.5")) << empty.fix;
}

TEST(MappingEmpty, APrefixThatFitsNoDeviceIsReplacedOrUnset) {
  const Node node = with_ibp_names(2);
  MappingRequest request = with_ibgda(node, {3, 5, 1});
  request.nvshmem.hca_prefix = "mlx5";
  EXPECT_EQ(find(checked(node, request), "mapping-empty")->fix, "export NVSHMEM_HCA_PREFIX=ibp");
  request.nvshmem.version = {3, 7, 0}; // without it, all names but smi*
  EXPECT_EQ(find(checked(node, request), "mapping-empty")->fix, "unset NVSHMEM_HCA_PREFIX");
}

TEST(MappingEmpty, DeepEpEnablesIbgdaItself) {
  const Node node = with_ibp_names(2);
  for (const World world : {World::deepep_ll, World::deepep_ht}) {
    MappingRequest request = request_for(node, world);
    request.nvshmem.version = {3, 4, 5};
    const Findings findings = checked(node, request);
    const Finding* empty = find(findings, "mapping-empty");
    ASSERT_NE(empty, nullptr) << ids(findings);
    EXPECT_TRUE(contains(empty->message, "NVSHMEM_HCA_PREFIX")) << empty->message;
    EXPECT_EQ(empty->fix, "export NVSHMEM_HCA_PREFIX=ibp");
    request.nvshmem.hca_prefix = "ibp";
    EXPECT_EQ(ids(checked(node, request)), "");
  }
  MappingRequest request = request_for(node);
  request.nvshmem.version = {3, 4, 5};
  EXPECT_EQ(ids(checked(node, request)), "") << "IBRC takes devices of any name";
}

TEST(RemoteTransport, AWordThatNvshmemDoesNotKnow) {
  const Node node = NodeBuilder::hgx(2).node;
  MappingRequest request = request_for(node);
  request.nvshmem.unknown_transport = "ibgda";
  request.nvshmem.proxy_transport = NvshmemTransport::none;
  request.nvshmem.transport = NvshmemTransport::none;
  const Findings none = checked(node, request);
  EXPECT_EQ(ids(none), "remote-transport-unknown(error)");
  EXPECT_EQ(none[0].fix, "unset NVSHMEM_REMOTE_TRANSPORT; export NVSHMEM_IB_ENABLE_IBGDA=1");
  request.nvshmem.transport = NvshmemTransport::ibgda;
  const Findings alone = checked(node, request);
  EXPECT_EQ(ids(alone), "remote-transport-unknown(warning)");
  EXPECT_EQ(alone[0].fix, "unset NVSHMEM_REMOTE_TRANSPORT");
  request.nvshmem.transport = NvshmemTransport::none;
  request.nvshmem.unknown_transport = "ibrcc";
  EXPECT_EQ(checked(node, request)[0].fix, "export NVSHMEM_REMOTE_TRANSPORT=ibrc");
}

TEST(RemoteTransport, TheFixBringsThePrefixThatIbgdaThenNeeds) {
  const Node node = with_ibp_names(1);
  MappingRequest request = request_for(node);
  request.nvshmem.version = {3, 4, 5};
  request.nvshmem.unknown_transport = "ibgda";
  request.nvshmem.transport = request.nvshmem.proxy_transport = NvshmemTransport::none;
  EXPECT_EQ(find(checked(node, request), "remote-transport-unknown")->fix,
            "unset NVSHMEM_REMOTE_TRANSPORT; export NVSHMEM_IB_ENABLE_IBGDA=1 "
            "NVSHMEM_HCA_PREFIX=ibp0s");
}

TEST(NvshmemVersionUnknown, AReleaseThatIsNewerThanTheRules) {
  const Node node = NodeBuilder::hgx(2).node;
  MappingRequest request = request_for(node);
  request.nvshmem.version = {3, 7, 9};
  EXPECT_EQ(ids(checked(node, request)), "");
  request.nvshmem.version = {9, 9, 9};
  const Findings findings = checked(node, request);
  EXPECT_EQ(ids(findings), "nvshmem-version-unknown(warning)");
  EXPECT_EQ(findings[0].subject, "NVSHMEM 9.9.9");
  EXPECT_TRUE(contains(findings[0].fix, "3.7.0")) << findings[0].fix;
  request.nvshmem.version_source = "loaded by PID 4000";
  EXPECT_TRUE(contains(checked(node, request)[0].message, "NVSHMEM 9.9.9 (loaded by PID 4000) is"));
}

TEST(MappingEmpty, UcxChoosesByItself) {
  const Node node = NodeBuilder::hgx(2).node;
  MappingRequest request = request_for(node);
  request.nvshmem.transport = NvshmemTransport::ucx;
  EXPECT_EQ(ids(checked(node, request)), "");
}

TEST(CheckMapping, AnyBytesGiveWellFormedFindings) {
  const Node node = NodeBuilder::hgx(3).node;
  std::string noise(3000, ',');
  for (std::size_t i = 0; i < noise.size(); ++i)
    noise[i] = static_cast<char>((i * 7919 + i / 13) % 256);
  expect_well_formed(checked(node, with_list(node, noise)));
  expect_well_formed(checked(node, with_pe_mapping(node, noise)));
  expect_well_formed(checked(node, with_pe_mapping(node, "mlx5_0:1:2147483647,mlx5_1:-9:-9")));
}

} // namespace shmemctl
