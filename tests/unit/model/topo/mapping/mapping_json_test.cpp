#include "src/model/topo/mapping/mapping_json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/node_builder.h"

namespace shmemctl {

using nlohmann::json;
using shmemctl::testing::NodeBuilder;

TEST(MappingJson, HasTheContractsKeys) {
  const Node node = NodeBuilder::hgx(2).node;
  MappingRequest request;
  request.gpus = assign_gpus(node, -1, {});
  request.nvshmem.version = {3, 5, 0};
  request.nvshmem.hca_list = "mlx5_0,mlx5_9:1";
  const Mapping mapping = map_nics(node, request);
  const json object = mapping_json(node, mapping, {{World::node, "ucx", {"line"}, "note", {}}});
  EXPECT_EQ(object["policy"], "nvshmem");
  EXPECT_EQ(object["version"], "3.5.0");
  EXPECT_FALSE(object.contains("version_source"));
  EXPECT_EQ(object["generation"], "E");
  EXPECT_EQ(object["world"], "node");
  EXPECT_EQ(object["pes"][1]["pe"], 1);
  EXPECT_EQ(object["pes"][1]["gpu"], 1);
  EXPECT_EQ(object["pes"][0]["nics"][0],
            (json{{"device", "mlx5_0"}, {"port", 1}, {"distance", "PIX"}}));
  EXPECT_EQ(object["pes"][0]["used"], 1);
  EXPECT_EQ(object["nics"][0]["device"], "mlx5_0");
  EXPECT_EQ(object["nics"][0]["pes"], (json{0, 1}));
  EXPECT_EQ(object["nics"][0]["load"], 2.0);
  EXPECT_EQ(object["table"], (json{{{"device", "mlx5_0"}, {"port", 1}}}));
  EXPECT_EQ(object["exclusions"][0]["device"], "mlx5_1");
  EXPECT_FALSE(object["exclusions"][0]["reason"].get<std::string>().empty());
  EXPECT_EQ(object["list"]["name"], "NVSHMEM_HCA_LIST");
  EXPECT_EQ(object["list"]["unmatched"][0]["name"], "mlx5_9");
  EXPECT_EQ(object["list"]["entries"][0]["port"], nullptr);
  EXPECT_EQ(object["advice"][0]["lines"], (json{"line"}));
}

TEST(MappingJson, SaysWhereAReleaseThatNobodyAskedForIsFrom) {
  const Node node = NodeBuilder::hgx(2).node;
  MappingRequest request;
  request.gpus = assign_gpus(node, -1, {});
  request.nvshmem.version = {3, 4, 5};
  request.nvshmem.version_source = "loaded by PID 4000";
  EXPECT_EQ(mapping_json(node, map_nics(node, request), {})["version_source"],
            "loaded by PID 4000");
}

TEST(MappingJson, WhatDoesNotApplyIsNullWithAReason) {
  NodeBuilder builder;
  builder.nic_at_root(builder.host_bridge(0), "mlx5_0");
  MappingRequest request;
  request.policy = Policy::optimal;
  request.gpus = assign_gpus(builder.node, 1, {});
  const json object = mapping_json(builder.node, map_nics(builder.node, request), {});
  for (const char* key : {"version", "generation", "table", "exclusions", "list"}) {
    EXPECT_TRUE(object[key].is_null()) << key;
    EXPECT_FALSE(object[std::string(key) + "_reason"].get<std::string>().empty()) << key;
  }
  EXPECT_TRUE(object["pes"][0]["gpu"].is_null());
  EXPECT_TRUE(object["pes"][0]["nics"][0]["distance"].is_null());
  EXPECT_FALSE(object["pes"][0]["nics"][0]["distance_reason"].get<std::string>().empty());
}

TEST(MappingJson, PesHaveTheNumbersOfTheirJob) {
  const Node node = NodeBuilder::hgx(2).node;
  MappingRequest request;
  request.gpus = assign_gpus(node, -1, {});
  request.nvshmem.hca_list = "mlx5_0";
  const Mapping mapping = map_nics(node, request);
  const json object = mapping_json(node, numbered_by_job(mapping, {1, 3}), {});
  EXPECT_EQ(object["pes"][0]["pe"], 1);
  EXPECT_EQ(object["pes"][1]["pe"], 3);
  EXPECT_EQ(object["pes"][1]["gpu"], 1);
  EXPECT_EQ(object["nics"][0]["pes"], (json{1, 3}));
  // Not the PEs that the mapping is for.
  EXPECT_EQ(numbered_by_job(mapping, {4}).pes[1].pe, 1);
}

} // namespace shmemctl
