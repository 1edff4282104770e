// What options ask of the mapping, on nodes of different kinds.
#include "src/model/topo/mapping/request.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/model/topo/advice/advice.h"

namespace shmemctl {

namespace {

Node node_with_a_port(LinkLayer layer) {
  Node node;
  Nic nic;
  nic.name = layer == LinkLayer::other ? "rdmap20s0" : "mlx5_0";
  nic.driver = known<std::string>(layer == LinkLayer::other ? "efa" : "mlx5_core", "test");
  nic.rdma = known(true, "test");
  NicPort port;
  port.state = known(PortState::active, "test");
  port.link_layer = known(layer, "test");
  nic.ports.push_back(port);
  node.nics.push_back(nic);
  return node;
}

NvshmemTransport transport_on(const Node& node, const Environment& environment) {
  return mapping_request(Options(environment), node).nvshmem.transport;
}

} // namespace

TEST(MappingRequestOptions, AutoIsLibfabricWhereNoPortIsIbrcs) {
  const Node efa = node_with_a_port(LinkLayer::other);
  EXPECT_EQ(transport_on(efa, {}), NvshmemTransport::libfabric);
  EXPECT_EQ(transport_on(efa, {{"SHMEMCTL_REMOTE_TRANSPORT", "ibrc"}}), NvshmemTransport::ibrc);
  EXPECT_EQ(transport_on(efa, {{"SHMEMCTL_IB_ENABLE_IBGDA", "1"}}), NvshmemTransport::ibgda);
  EXPECT_EQ(transport_on(node_with_a_port(LinkLayer::ethernet), {}), NvshmemTransport::ibrc);
  EXPECT_EQ(transport_on(Node(), {}), NvshmemTransport::ibrc);
}

TEST(MappingRequestOptions, LibfabricThatWasAssumedIsSaid) {
  const Node efa = node_with_a_port(LinkLayer::other);
  const auto said = [&efa](const Environment& environment) {
    std::vector<std::string> infos;
    const MappingRequest request = mapping_request(Options(environment), efa);
    for (const Finding& finding : check_mapping(efa, map_nics(efa, request)))
      if (finding.id == "mapping-empty" && finding.severity == Severity::info)
        infos.push_back(finding.fix);
    return infos;
  };
  ASSERT_EQ(said({}).size(), 1u);
  EXPECT_NE(said({})[0].find("NVSHMEM_REMOTE_TRANSPORT=libfabric"), std::string::npos);
  EXPECT_TRUE(said({{"SHMEMCTL_REMOTE_TRANSPORT", "libfabric"}}).empty());
  EXPECT_TRUE(said({{"SHMEMCTL_IB_ENABLE_IBGDA", "1"}}).empty()) << "the mapping is IBGDA's";
}

TEST(MappingRequestOptions, ErrorsNameWhatSetTheValue) {
  const auto message = [](const Options& options) {
    Node node;
    node.gpus.resize(2);
    try {
      mapping_request(options, node);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("no error");
  };
  const std::string no_gpu = ": \"9\" is not a GPU of this node, which has 2";
  EXPECT_EQ(message(Options(Environment(), {{"GPUS", "0,9"}})), "--gpus 0,9" + no_gpu);
  EXPECT_EQ(message(Options(Environment{{"SHMEMCTL_GPUS", "0,9"}})), "SHMEMCTL_GPUS=0,9" + no_gpu);
  EXPECT_EQ(message(Options(Environment(), {}, {{"GPUS", "0,9"}, {"GPUS@", "a.conf"}})),
            "GPUS=0,9" + no_gpu + ", in a.conf");
  EXPECT_EQ(message(Options(Environment{{"SHMEMCTL_NVSHMEM_VERSION", "new"}})),
            "SHMEMCTL_NVSHMEM_VERSION=new: not a version");
}

} // namespace shmemctl
