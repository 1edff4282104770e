#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/report.h"
#include "reports/validate.h"
#include "src/base/error.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/writers/writer.h"
#include "tests/support/random_node.h"

namespace shmemctl {
namespace {

using nlohmann::json;

json contract_only() {
  return json::parse(R"({
    "gpus": [{"index": 0, "pci": "0000:18:00.0", "numa": 0},
             {"index": 1, "pci": "0000:2a:00.0", "numa": 1}],
    "nics": [{"name": "mlx5_0", "pci": "0000:19:00.0", "numa": 0, "rate_Gbps": 400}],
    "distances": {"labels": ["GPU0", "GPU1", "mlx5_0"],
                  "matrix": [["X", "NV18", "PIX"], ["NV18", "X", "SYS"], ["PIX", "SYS", "X"]]}})");
}

std::string report_of(const json& topology) {
  json document = to_json(Report{});
  document["topology"] = topology;
  return to_text(document);
}

/// The message of the Error that reading `topology` throws; "" if it is read.
std::string refusal(const json& topology) {
  try {
    node_from_json(topology, "r.json");
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(error.fix(), "");
    return error.message();
  }
}

TEST(NodeJson, ReadingBackIsTheIdentityForRandomNodes) {
  std::mt19937_64 random(20261121);
  for (int i = 0; i < 2000; ++i) {
    const Node node = test::random_node(random);
    const Node back = node_from_json(topology_json(node), "random");
    ASSERT_EQ(first_difference(node, back), "") << "node " << i;
    ASSERT_EQ(back.notes, node.notes);
    ASSERT_EQ(back.format, node.format);
  }
}

TEST(NodeJson, ReadingBackTheTextIsTheIdentityToo) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    const Node node = test::random_node(random);
    ASSERT_EQ(first_difference(node, read_report(report_of(topology_json(node)), "random")), "")
        << "node " << i;
  }
}

TEST(NodeJson, OriginsAndReasonsSurvive) {
  Node node;
  node.packages = {{0, known<std::string>("CPU", "/proc/cpuinfo")},
                   {1, unknown<std::string>("not listed")}};
  const Node back = node_from_json(topology_json(node), "node");
  EXPECT_EQ(back.packages[0].model.origin, "/proc/cpuinfo");
  EXPECT_EQ(back.packages[1].model.origin, "not listed");
  EXPECT_FALSE(back.packages[1].model);
}

TEST(NodeJson, TopologyOfRandomNodesFollowsTheSchema) {
  std::mt19937_64 random(99);
  for (int i = 0; i < 60; ++i) {
    Node node = test::random_node(random);
    for (NumaNode& numa : node.numa_nodes) // no machine has 2^63 bytes
      if (numa.memory_bytes)
        numa.memory_bytes.value = *numa.memory_bytes / 2;
    Report report;
    report.topology = topology_json(node);
    for (const SchemaViolation& violation : validate_report(to_json(report)))
      ADD_FAILURE() << i << " " << violation.pointer << ": " << violation.message;
  }
}

TEST(NodeJson, NicsKnownNotToBeRdmaAreNotInTheMatrix) {
  Node node;
  node.nics.resize(3);
  node.nics[0].name = "mlx5_0";
  node.nics[0].rdma = known(true, "");
  node.nics[1].name = "maybe";
  node.nics[1].rdma = unknown<bool>("not told");
  node.nics[2].name = "eth0";
  node.nics[2].rdma = known(false, "");
  const json topology = topology_json(node);
  EXPECT_EQ(topology["distances"]["labels"], json({"mlx5_0", "maybe"}));
  ASSERT_EQ(topology["other_nics"].size(), 1u);
  EXPECT_EQ(topology["other_nics"][0]["name"], "eth0");
  EXPECT_TRUE(topology["nics"][1]["rdma"].is_null());
  EXPECT_EQ(topology["nics"][1]["rdma_reason"], "not told");
}

TEST(NodeJson, UnknownDistancesAreNullWithAReason) {
  Node node;
  node.gpus.resize(2);
  node.gpus[1].index = 1;
  const json distances = topology_json(node)["distances"];
  EXPECT_TRUE(distances["matrix"][0][1].is_null());
  EXPECT_EQ(distances["unknown"][0]["reason"], "no PCI address known");
  EXPECT_EQ(distances["unknown"][0]["cells"], json::parse("[[0,1],[1,0]]"));
}

TEST(NodeJson, LinkLayerAndRateAreThoseThatThePortsShare) {
  Node node;
  node.nics.resize(1);
  node.nics[0].ports.resize(2);
  node.nics[0].ports[0].rate_Gbps = known(200.0, "");
  node.nics[0].ports[1].rate_Gbps = known(400.0, "");
  for (NicPort& port : node.nics[0].ports)
    port.link_layer = known(LinkLayer::ethernet, "");
  const json nic = topology_json(node)["nics"][0];
  EXPECT_EQ(nic["link_layer"], "ethernet");
  EXPECT_EQ(nic["rate_Gbps_reason"], "its ports differ");
}

TEST(NodeJson, TheContractsKeysAloneAreEnough) {
  const Node node = node_from_json(contract_only(), "contract");
  ASSERT_EQ(node.gpus.size(), 2u);
  ASSERT_EQ(node.nics.size(), 1u);
  EXPECT_EQ(to_string(node.pci[static_cast<std::size_t>(node.gpus[1].pci)].address),
            "0000:2a:00.0");
  EXPECT_EQ(to_string(distance(node, 0, 1)), "NV18");
  EXPECT_EQ(to_string(distance(node, 0, 2)), "PIX");
  EXPECT_EQ(to_string(distance(node, 1, 2)), "SYS");
  EXPECT_EQ(*node.gpus[1].numa, 1);
  EXPECT_FALSE(node.nics[0].rdma);
  ASSERT_EQ(node.nics[0].ports.size(), 1u);
  EXPECT_EQ(*node.nics[0].ports[0].rate_Gbps, 400.0);
}

TEST(NodeJson, TheContractsKeysOfOurOwnReportsGiveTheSameDistances) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    const Node node = test::random_node(random);
    json topology = topology_json(node);
    topology.erase("model");
    const json again = topology_json(node_from_json(topology, "contract"));
    ASSERT_EQ(again["distances"]["matrix"], topology["distances"]["matrix"]) << i;
    ASSERT_EQ(again["distances"]["labels"], topology["distances"]["labels"]) << i;
    for (const char* list : {"gpus", "nics", "other_nics"})
      for (std::size_t at = 0; at < topology[list].size(); ++at)
        for (const char* key : {"name", "pci", "numa"})
          ASSERT_EQ(again[list][at][key], topology[list][at][key]) << i << list << at << key;
  }
}

struct Mutation {
  const char* pointer;
  const char* value; ///< JSON, or null to erase the member
  const char* named; ///< what the message must name
};

TEST(NodeJson, RefusesWhatIsMalformedAndNamesIt) {
  const Mutation mutations[] = {
      {"/gpus", nullptr, "/topology/gpus"},
      {"/gpus", "{}", "/topology/gpus"},
      {"/gpus/1", "3", "/topology/gpus/1"},
      {"/gpus/1/index", "7", "/topology/gpus/1/index"},
      {"/gpus/1/index", "\"1\"", "/topology/gpus/1/index"},
      {"/gpus/0/pci", "\"nonsense\"", "/topology/gpus/0/pci"},
      {"/gpus/0/numa", "1e300", "/topology/gpus/0/numa"},
      {"/gpus/0/numa", "0.5", "/topology/gpus/0/numa"},
      {"/nics/0/name", "4", "/topology/nics/0/name"},
      {"/nics/0/name", nullptr, "/topology/nics/0/name"},
      {"/nics/0/rate_Gbps", "\"400\"", "/topology/nics/0/rate_Gbps"},
      {"/nics/0/link_layer", "\"token ring\"", "/topology/nics/0/link_layer"},
      {"/distances", nullptr, "/topology/distances"},
      {"/distances/labels", nullptr, "/topology/distances/labels"},
      {"/distances/labels/2", "\"mlx5_9\"", "/topology/distances/labels/2"},
      {"/distances/labels/1", "\"GPU0\"", "/topology/distances/labels/1"},
      {"/distances/matrix/2", nullptr, "/topology/distances/matrix"},
      {"/distances/matrix/1/2", nullptr, "/topology/distances/matrix/1"},
      {"/distances/matrix/1/2", "\"NEAR\"", "/topology/distances/matrix/1/2"},
      {"/distances/matrix/1/2", "5", "/topology/distances/matrix/1/2"},
  };
  for (const Mutation& mutation : mutations) {
    json topology = contract_only();
    const json::json_pointer pointer(mutation.pointer);
    if (mutation.value)
      topology[pointer] = json::parse(mutation.value);
    else if (json& above = topology[pointer.parent_pointer()]; above.is_array())
      above.erase(std::stoul(pointer.back()));
    else
      above.erase(pointer.back());
    EXPECT_NE(refusal(topology).find(std::string(mutation.named) + ":"), std::string::npos)
        << mutation.pointer << ": " << refusal(topology);
  }
}

TEST(NodeJson, RefusesAModelWhosePartsPointNowhere) {
  Node node;
  node.pci.resize(2);
  node.pci[1].parent = 0;
  node.gpus.resize(1);
  node.gpus[0].pci = 1;
  node.gpus[0].links.resize(1);
  const json good = topology_json(node);
  ASSERT_EQ(refusal(good), "");
  const Mutation mutations[] = {
      // an entry that is its own parent: a circle
      {"/model/pci/1/parent", "1", "/topology/model/pci/1/parent"},
      {"/model/pci/0/parent", "1", "/topology/model/pci/0/parent"}, // child before parent
      {"/model/pci/0/parent", "-2", "/topology/model/pci/0/parent"},
      {"/model/pci/0/host_bridge", "0", "/topology/model/pci/0/host_bridge"},
      {"/model/pci/0/address", "\"00:00\\u0000\"", "/topology/model/pci/0/address"},
      {"/model/pci/0/vendor", "70000", "/topology/model/pci/0/vendor"},
      {"/model/pci/0/kind", "\"router\"", "/topology/model/pci/0/kind"},
      {"/model/gpus/0/pci", "2", "/topology/model/gpus/0/pci"},
      {"/model/gpus/0/index", "1", "/topology/model/gpus/0/index"},
      {"/model/gpus/0/links/0/count", "2000000000", "/topology/model/gpus/0/links/0/count"},
      {"/model/nvswitches", "-1", "/topology/model/nvswitches"},
      {"/model/recorded", "{\"matrix\": []}", "/topology/model/recorded/matrix"},
      {"/model", "[]", "/topology/model"},
  };
  for (const Mutation& mutation : mutations) {
    json topology = good;
    topology[json::json_pointer(mutation.pointer)] = json::parse(mutation.value);
    EXPECT_NE(refusal(topology).find(std::string(mutation.named) + ":"), std::string::npos)
        << mutation.pointer << ": " << refusal(topology);
  }
}

TEST(NodeJson, RefusesMoreDevicesThanAnyNodeHas) {
  json topology = contract_only();
  for (int i = 0; i < 2000; ++i)
    topology["nics"].push_back({{"name", "n" + std::to_string(i)}, {"pci", nullptr}, {"numa", 0}});
  EXPECT_NE(refusal(topology).find("more than 1024 devices"), std::string::npos);
  json model = topology_json(Node{});
  for (int i = 0; i < 100; ++i) {
    PciDevice device;
    device.parent = i - 1;
    Node chain;
    chain.pci = {device};
    chain.pci[0].parent = -1;
    json entry = topology_json(chain)["model"]["pci"][0];
    entry["parent"] = i - 1;
    model["model"]["pci"].push_back(entry);
  }
  EXPECT_NE(refusal(model).find("levels"), std::string::npos) << refusal(model);
}

TEST(ReadReport, RefusesOtherDocumentsInOneLine) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "the file is empty"},
      {"[]", "/schema/name"},
      {"{\"schema\": {\"name\": \"other\", \"version\": \"1.0.0\"}}", "/schema/name"},
      {"{\"schema\": {\"name\": \"shmemctl.report\"}}", "/schema/version"},
      {"{\"schema\": {\"name\": \"shmemctl.report\", \"version\": \"one\"}}", "/schema/version"},
      {"{\"schema\": {\"name\": \"shmemctl.report\", \"version\": \"2.0.0\"}}",
       "schema 2.0.0 is newer than this tool's 1.1.0"},
      {"{\"schema\": {\"name\": \"shmemctl.report\", \"version\": \"1.0.0\"}}", "/topology"},
      {"{\"schema\": ", "line 1, column"},
      {std::string(1 << 20, '['), "nested more than"},
  };
  for (const auto& [text, expected] : cases) {
    try {
      read_report(text, "r.json");
      ADD_FAILURE() << "accepted: " << text.substr(0, 80);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(error.message().find(expected), std::string::npos) << error.message();
      EXPECT_EQ(error.message().find('\n'), std::string::npos);
    }
  }
}

TEST(ReadReport, ANewerMinorVersionIsReadWithANote) {
  json document = json::parse(report_of(contract_only()));
  document["schema"]["version"] = "1.4.0";
  document["topology"]["gpus"][0]["warp_drive"] = true;
  const Node node = read_report(document.dump(), "r.json");
  EXPECT_EQ(node.format, "report");
  ASSERT_EQ(node.notes.size(), 1u);
  EXPECT_NE(node.notes[0].find("ignored"), std::string::npos);
}

} // namespace
} // namespace shmemctl
