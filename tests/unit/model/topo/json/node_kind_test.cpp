#include "src/model/topo/writers/node_kind.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/model/topo/mapping/mapping_json.h"
#include "src/model/topo/writers/writer.h"
#include "tests/support/node_builder.h"

namespace shmemctl {
namespace {

using shmemctl::testing::NodeBuilder;

std::string kind_of(const Node& node) {
  MappingRequest request;
  request.gpus = assign_gpus(node, -1, {});
  return node_kind(topology_json(node), mapping_json(node, map_nics(node, request), {}));
}

TEST(NodeKind, NamesIdsAndAddressesDoNotMatter) {
  const Node node = NodeBuilder::hgx(2).node;
  Node twin = node;
  twin.hostname = "another";
  twin.notes.push_back("a file that cannot be read");
  twin.gpus[0].uuid = known(std::string("GPU-1"), "nvml");
  twin.nics[0].node_guid = known(std::string("0c42:a103"), "sysfs");
  twin.nics[0].ports[0].lid = known(7, "sysfs");
  twin.nics[0].ports[0].gids.push_back({0, "fe80::1", {}, {}});
  twin.pci[0].link.speed_GTps = known(2.5, "sysfs");
  EXPECT_EQ(kind_of(twin), kind_of(node));
}

TEST(NodeKind, WhatIsThereDoes) {
  const Node node = NodeBuilder::hgx(2).node;
  Node slow = node, without = node, other_model = node;
  slow.nics[0].ports[0].rate_Gbps = known(100.0, "sysfs");
  EXPECT_NE(kind_of(slow), kind_of(node));
  without.nics.pop_back();
  EXPECT_NE(kind_of(without), kind_of(node));
  other_model.gpus[1].name = known(std::string("another"), "nvml");
  EXPECT_NE(kind_of(other_model), kind_of(node));
}

TEST(NodeKind, TheMappingDoesToo) {
  const Node node = NodeBuilder::hgx(2).node;
  MappingRequest request;
  request.gpus = assign_gpus(node, -1, {});
  request.nvshmem.hca_list = "mlx5_0";
  EXPECT_NE(node_kind(topology_json(node), mapping_json(node, map_nics(node, request), {})),
            kind_of(node));
}

} // namespace
} // namespace shmemctl
