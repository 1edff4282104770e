// What a node of one type must have, recorded on one node and compared with others.
#include "src/instruments/check/expectation.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/model/topo/writers/writer.h"
#include "tests/support/findings.h"
#include "tests/support/node_builder.h"
#include "tests/support/random_node.h"

namespace shmemctl {
namespace {

using nlohmann::json;
using testing::NodeBuilder;

Node good_node() {
  NodeBuilder builder = NodeBuilder::hgx(4);
  for (Gpu& gpu : builder.node.gpus) {
    gpu.name = known(std::string("NVIDIA H100 80GB HBM3"), "test");
    gpu.vbios = known(std::string("96.00.89.00.01"), "test");
    GpuLink link;
    link.target = LinkTarget::nvswitch;
    link.count = 18;
    gpu.links.push_back(link);
    builder.link(gpu.pci, 2.5, 16, 32, 16);
  }
  for (Nic& nic : builder.node.nics) {
    nic.firmware = known(std::string("28.39.1002"), "test");
    builder.link(nic.pci, 32, 16, 32, 16);
  }
  builder.node.nvswitches = 4;
  return builder.node;
}

json good_host() {
  return {{"kernel", "5.15.0-91-generic"}, {"versions", {{"nvidia", "535.129.03"}}}};
}

Findings compared(const Node& node, const std::string& text, const json& host = good_host()) {
  Findings findings = compare_with_expectation(parse_expectation(text, "node.json"), node, host);
  testing::expect_well_formed(findings);
  return findings;
}

std::string good_file() {
  return record_expectation(good_node(), good_host());
}

/// The one finding; fails the test if there is another number of them.
Finding only(const Findings& findings) {
  EXPECT_EQ(findings.size(), 1u) << testing::ids(findings);
  return findings.empty() ? Finding{} : findings.front();
}

TEST(Expectation, ANodeFitsWhatWasRecordedOnIt) {
  EXPECT_EQ(compared(good_node(), good_file()), Findings{});
  std::mt19937_64 random(28);
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    const Node node = test::random_node(random);
    const json host = host_json(node, nullptr);
    const std::string text = record_expectation(node, host);
    const Findings findings =
        compare_with_expectation(parse_expectation(text, "node.json"), node, host);
    EXPECT_EQ(findings, Findings{})
        << "round " << round << ": " << (findings.empty() ? "" : findings[0].message) << "\n"
        << text;
  }
}

TEST(Expectation, ARecordHasNothingOfOneNodeAlone) {
  Node node = good_node();
  node.hostname = "node-17";
  node.gpus[0].uuid = known(std::string("GPU-aaaa"), "test");
  node.nics[0].node_guid = known(std::string("0c42:a103"), "test");
  const std::string text = record_expectation(node, good_host());
  for (const char* own : {"node-17", "GPU-aaaa", "0c42:a103"})
    EXPECT_EQ(text.find(own), std::string::npos) << text;
}

TEST(Expectation, ADeviceThatHasFallenOffTheBusIsNamed) {
  Node node = good_node();
  const std::string address =
      to_string(node.pci[static_cast<std::size_t>(node.gpus[2].pci)].address);
  node.gpus.erase(node.gpus.begin() + 2);
  Finding finding = only(compared(node, good_file()));
  EXPECT_EQ(finding.id, "expected-missing");
  EXPECT_EQ(finding.severity, Severity::error);
  EXPECT_EQ(finding.subject, "GPU at " + address);
  EXPECT_TRUE(testing::contains(finding.fix, "lspci -s " + address)) << finding.fix;

  node = good_node();
  node.nics.erase(node.nics.begin() + 3);
  finding = only(compared(node, good_file()));
  EXPECT_EQ(finding.id, "expected-missing");
  EXPECT_EQ(finding.subject, "mlx5_3");
}

TEST(Expectation, AllThatDiffersOfADeviceIsOneError) {
  Node node = good_node();
  node.nics[1].firmware = known(std::string("28.38.1002"), "test");
  node.nics[1].ports[0].rate_Gbps = known(200.0, "test");
  node.pci[static_cast<std::size_t>(node.nics[1].pci)].link.width = known(8, "test");
  const Finding finding = only(compared(node, good_file()));
  EXPECT_EQ(finding.id, "expected-differs");
  EXPECT_EQ(finding.severity, Severity::error);
  EXPECT_EQ(finding.subject, "mlx5_1");
  for (const char* part :
       {"the PCIe width is 8 lanes, expected 16 lanes", "the firmware is 28.38.1002",
        "port 1's rate is 200 Gb/s, expected 400 Gb/s"})
    EXPECT_TRUE(testing::contains(finding.message, part)) << finding.message;
}

TEST(Expectation, TheFixNamesThePortOfTheCard) {
  Node good = good_node();
  Nic& card = good.nics[0];
  const auto fix = [&] {
    const std::string file = record_expectation(good, good_host());
    Node node = good;
    NicPort& port = node.nics[0].ports.back();
    port.link_layer =
        known(*port.link_layer == LinkLayer::ethernet ? LinkLayer::infiniband : LinkLayer::ethernet,
              "test");
    return only(compared(node, file)).fix;
  };
  const std::string address = to_string(good.pci[static_cast<std::size_t>(card.pci)].address);
  EXPECT_TRUE(testing::contains(fix(), "-d " + address + " set LINK_TYPE_P1=1")) << fix();
  // One device with both ports.
  card.ports.push_back(card.ports[0]);
  card.ports.back().number = 2;
  EXPECT_TRUE(testing::contains(fix(), "-d " + address + " set LINK_TYPE_P2=1")) << fix();
  // Each port is a function of its own, with a port 1.
  card.ports.pop_back();
  good.pci[static_cast<std::size_t>(card.pci)].address.function = 1;
  EXPECT_TRUE(testing::contains(fix(), ".1 set LINK_TYPE_P2=1")) << fix();
}

TEST(Expectation, APortThatIsDownAndAFactThatCannotBeReadDoNotPass) {
  Node node = good_node();
  node.nics[0].ports[0].state = known(PortState::down, "test");
  EXPECT_TRUE(testing::contains(only(compared(node, good_file())).message,
                                "port 1 is DOWN, expected ACTIVE"));
  node = good_node();
  node.nics[0].firmware = unknown<std::string>("fw_ver cannot be read");
  EXPECT_TRUE(testing::contains(only(compared(node, good_file())).message,
                                "the firmware is unknown (fw_ver cannot be read), expected 28"));
}

TEST(Expectation, NumbersAndVersionsOfTheWholeNode) {
  Node node = good_node();
  node.nvswitches = 3;
  EXPECT_TRUE(testing::contains(only(compared(node, good_file())).message, "3 found, expected 4"));
  json host = good_host();
  host["versions"]["nvidia"] = "550.54.15";
  Finding finding = only(compared(good_node(), good_file(), host));
  EXPECT_EQ(finding.subject, "nvidia");
  EXPECT_EQ(finding.message, "nvidia: version is 550.54.15, expected 535.129.03");
  host["versions"].erase("nvidia");
  finding = only(compared(good_node(), good_file(), host));
  EXPECT_TRUE(testing::contains(finding.message, "unknown")) << finding.message;
}

TEST(Expectation, DriverCudaAndVbiosAreRecordedAndCompared) {
  Node node = good_node();
  node.driver_version = known(std::string("580.159.03"), "test");
  node.cuda_version = known(std::string("13.0"), "test");
  const std::string text = record_expectation(node, host_json(node, nullptr));
  const json recorded = json::parse(text);
  EXPECT_EQ(recorded["versions"], json({{"nvidia", "580.159.03"}, {"cuda", "13.0"}}));
  EXPECT_EQ(recorded["gpus"][1]["vbios"], "96.00.89.00.01");
  EXPECT_EQ(compared(node, text, host_json(node, nullptr)), Findings{});

  Node other = node;
  other.cuda_version = known(std::string("12.2"), "test");
  Finding finding = only(compared(other, text, host_json(other, nullptr)));
  EXPECT_EQ(finding.message, "cuda: version is 12.2, expected 13.0");
  EXPECT_TRUE(testing::contains(finding.fix, "driver that serves CUDA 13.0")) << finding.fix;
  other = node;
  other.driver_version = known(std::string("535.1"), "test");
  EXPECT_EQ(only(compared(other, text, host_json(other, nullptr))).subject, "nvidia");
  other = node;
  other.gpus[1].vbios = known(std::string("96.00.30.00.01"), "test");
  finding = only(compared(other, text, host_json(other, nullptr)));
  EXPECT_TRUE(
      testing::contains(finding.message, "the VBIOS is 96.00.30.00.01, expected 96.00.89.00.01"))
      << finding.message;
  other.gpus[1].vbios = unknown<std::string>("nvmlDeviceGetVbiosVersion: Not Supported");
  finding = only(compared(other, text, host_json(other, nullptr)));
  EXPECT_TRUE(testing::contains(finding.message, "the VBIOS is unknown (nvmlDevice"))
      << finding.message;
  // Where NVML does not give it, nothing is recorded, so that nothing is compared.
  EXPECT_FALSE(json::parse(record_expectation(other, good_host()))["gpus"][1].contains("vbios"));
}

TEST(Expectation, AKindIsCountedAndPatternsLeaveRoom) {
  const std::string kinds = R"({"expectation": 1,
    "gpus": [{"count": 4, "model": "NVIDIA H100*", "nvlinks": 18}],
    "nics": [{"count": 4, "firmware": "28.39.*", "ports": [{"rate_Gbps": 400}]}],
    "versions": {"kernel": "5.15.*"}})";
  EXPECT_EQ(compared(good_node(), kinds), Findings{});
  Node node = good_node();
  node.gpus.pop_back();
  node.gpus[0].links[0].count = 17;
  const Findings findings = compared(node, kinds);
  ASSERT_EQ(findings.size(), 2u) << testing::ids(findings);
  EXPECT_TRUE(testing::contains(findings[0].message, "the number of NVLinks is 17, expected 18"));
  EXPECT_EQ(findings[1].message, "1 of 4 GPUs is missing");
}

TEST(Expectation, MoreThanExpectedIsAWarning) {
  NodeBuilder builder;
  builder.node = good_node();
  builder.nic_at_root(builder.host_bridge(0), "mlx5_9");
  const Finding finding = only(compared(builder.node, good_file()));
  EXPECT_EQ(finding.id, "expected-extra");
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(finding.subject, "mlx5_9");
  EXPECT_EQ(compared(builder.node, R"({"expectation": 1})"), Findings{});
}

TEST(Expectation, ABareMachineLacksEverything) {
  const Findings findings = compared(Node{}, good_file());
  EXPECT_EQ(std::count_if(findings.begin(), findings.end(),
                          [](const Finding& finding) { return finding.id == "expected-missing"; }),
            8);
}

std::string refusal(const std::string& text) {
  try {
    parse_expectation(text, "node.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.message();
  }
  return "read";
}

TEST(Expectation, AMistakeInTheFileIsNamedWithItsPlace) {
  EXPECT_TRUE(testing::contains(refusal("{"), "node.json")) << refusal("{");
  EXPECT_TRUE(testing::contains(refusal("{}"), "it has no key")) << refusal("{}");
  EXPECT_TRUE(testing::contains(refusal(R"({"expectation": 2})"), "format 2 is too new"));
  const std::string typo =
      refusal(R"({"expectation": 1, "nics": [{"name": "a", "firmwear": "1"}]})");
  EXPECT_TRUE(testing::contains(typo, "nics[0].firmwear")) << typo;
  EXPECT_TRUE(testing::contains(typo, "did you mean firmware?")) << typo;
  for (const auto& [text, place] :
       {std::pair(R"({"expectation": 1, "gpus": {}})", "gpus"),
        std::pair(R"({"expectation": 1, "gpus": [3]})", "gpus[0]"),
        std::pair(R"({"expectation": 1, "gpus": [{"pci": "18"}]})", "gpus[0].pci"),
        std::pair(R"({"expectation": 1, "gpus": [{"count": 0}]})", "gpus[0].count"),
        std::pair(R"({"expectation": 1, "nics": [{"name": "a", "count": 2}]})", "nics[0].count"),
        std::pair(R"({"expectation": 1, "nics": [{"ports": [{"rate_Gbps": "x"}]}]})",
                  "nics[0].ports[0].rate_Gbps"),
        std::pair(R"({"expectation": 1, "versions": {"kernel": 5}})", "versions.kernel")})
    EXPECT_TRUE(testing::contains(refusal(text), place)) << refusal(text);
}

} // namespace
} // namespace shmemctl
