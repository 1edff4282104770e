// What options ask of the mapping, on nodes of different kinds.
#include "src/model/topo/mapping/request.h"

#include <gtest/gtest.h>

namespace shmemctl {

namespace {

Node node_with_a_port(LinkLayer layer) {
  Node node;
  Nic nic;
  nic.name = "device0";
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

} // namespace shmemctl
