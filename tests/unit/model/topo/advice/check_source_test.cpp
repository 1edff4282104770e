// What a reader could not read, omitted or synthesized is a finding, and no advice relies on it.
#include <gtest/gtest.h>

#include "src/model/topo/readers/reader.h"
#include "tests/unit/model/topo/advice/mapping_requests.h"

namespace shmemctl {
namespace {

Node with_labels_only() {
  Node node = NodeBuilder::from_matrix({"NIC0", "NIC1"}, {{"PIX", "NODE"}, {"NODE", "PIX"}});
  for (Nic& nic : node.nics)
    nic.unnamed = true;
  return node;
}

Findings all_of(const Node& node, const MappingRequest& request) {
  Findings all = check_node(node);
  expect_well_formed(all);
  for (Finding& finding : checked(node, request))
    all.push_back(std::move(finding));
  return all;
}

/// No fix may export a name that no library knows.
void expect_no_labels_in_fixes(const Findings& findings) {
  for (const Finding& finding : findings) {
    EXPECT_FALSE(contains(finding.fix, "NIC0") || contains(finding.fix, "NIC1")) << finding.fix;
    EXPECT_FALSE(contains(finding.fix, "HCA_PREFIX=")) << finding.fix;
  }
}

TEST(CheckSource, EveryNoteAndRemarkIsAFinding) {
  Node node = NodeBuilder::from_matrix({"mlx5_0"}, {{"PIX"}});
  node.notes = {"line 3: something is left out"};
  node.remarks = {"something else"};
  const Findings findings = check_node(node);
  EXPECT_EQ(ids(findings), "topology-incomplete(warning) topology-incomplete(info)");
  EXPECT_EQ(findings[0].message, node.notes[0]);
  EXPECT_EQ(findings[1].message, node.remarks[0]);
}

TEST(CheckSource, ManyNotesAreFewFindingsThatCountTheRest) {
  Node node = NodeBuilder::from_matrix({"mlx5_0"}, {{"PIX"}});
  for (int i = 0; i < 20; ++i)
    node.notes.push_back("note " + std::to_string(i));
  const Findings findings = check_source(node);
  ASSERT_EQ(findings.size(), 6U);
  EXPECT_TRUE(contains(findings.back().message, "15 more")) << findings.back().message;
}

TEST(CheckSource, WhoReadsACopyIsNotSentToDoctorOnThisMachine) {
  Node node = NodeBuilder::from_matrix({"mlx5_0"}, {{"PIX"}});
  node.notes = {"a file was not readable"};
  node.format = "sysroot";
  EXPECT_TRUE(contains(check_source(node).at(0).fix, "on that host"));
  EXPECT_TRUE(contains(check_source(node).at(0).fix, "sudo shmemctl gather -o node.tar.zst"));
  node.format = "live";
  EXPECT_EQ(check_source(node).at(0).fix, "run shmemctl doctor to see what is missing");
}

TEST(CheckSource, AFileWithoutAnyDeviceIsNotWell) {
  const Node node = read_nccl_xml("<system version=\"1\"><cpu numaid=\"0\">"
                                  "<pci busid=\"0:1:0.0\"/></cpu></system>",
                                  "file");
  const Findings findings = check_node(node);
  EXPECT_EQ(ids(findings), "topology-incomplete(warning) topology-incomplete(warning)");
  Node live;
  live.format = "live";
  EXPECT_EQ(ids(check_source(live)), "") << "a machine may have none";
}

TEST(CheckSource, ReadersNotesOfForeignTextAreMadeHarmless) {
  Node node = NodeBuilder::from_matrix({"mlx5_0"}, {{"PIX"}});
  node.notes = {"a\nb\x1b[2J"};
  EXPECT_EQ(check_source(node).at(0).message.find_first_of("\n\x1b"), std::string::npos);
}

TEST(UnnamedNics, AreSaidAndNeverExported) {
  const Node node = with_labels_only();
  const MappingRequest request = request_for(node);
  const Findings findings = all_of(node, request);
  ASSERT_NE(find(findings, "nic-names-unknown"), nullptr);
  EXPECT_EQ(find(findings, "nic-names-unknown")->severity, Severity::warning);
  expect_no_labels_in_fixes(findings);
  EXPECT_EQ(find(findings, "mapping-unknown"), nullptr) << "places decide without a list";
  MappingRequest optimal = request;
  optimal.policy = Policy::optimal;
  EXPECT_TRUE(advise(node, map_nics(node, optimal)).empty());
}

TEST(UnnamedNics, NoFixOfAnyFindingNamesThem) {
  // Two GPUs of a world each on one NIC, in each world and for each policy.
  Node node = with_labels_only();
  for (auto& row : *node.recorded)
    for (Distance& cell : row)
      if (cell.path == PathClass::pix)
        cell.path = PathClass::node;
  for (const World world : {World::node, World::deepep_ht, World::deepep_ll})
    for (const Policy policy : {Policy::nvshmem, Policy::nccl})
      for (const bool ibgda : {false, true}) {
        MappingRequest request = request_for(node, world);
        request.policy = policy;
        request.nvshmem.enable_nic_pe_mapping = world == World::deepep_ht;
        if (ibgda)
          request.nvshmem.transport = NvshmemTransport::ibgda;
        const Mapping mapping = map_nics(node, request);
        EXPECT_FALSE(mapping.pes[0].nics.empty()) << "IBGDA's filter judges no label";
        expect_no_labels_in_fixes(all_of(node, request));
      }
}

TEST(UnnamedNics, ListsAreNotJudgedAgainstLabels) {
  const Node node = with_labels_only();
  for (const char* list : {"mlx5_0:1,mlx5_1:1", "^mlx5_3", "NIC0:1"}) {
    const Findings findings = all_of(node, with_list(node, list));
    EXPECT_EQ(find(findings, "hca-unknown"), nullptr) << list;
    EXPECT_EQ(find(findings, "mapping-empty"), nullptr) << list;
    ASSERT_NE(find(findings, "mapping-unknown"), nullptr) << list;
    EXPECT_TRUE(contains(find(findings, "mapping-unknown")->message, "NVSHMEM_HCA_LIST")) << list;
    expect_no_labels_in_fixes(findings);
  }
  const MappingRequest pinned = with_pe_mapping(node, "mlx5_0:1:1,mlx5_1:1:1");
  const Mapping mapping = map_nics(node, pinned);
  EXPECT_TRUE(mapping.pes[0].nics.empty());
  EXPECT_TRUE(contains(mapping.pes[0].reason, "NVSHMEM_HCA_PE_MAPPING")) << mapping.pes[0].reason;
}

TEST(UnnamedNics, AListOfNamedDevicesIsDecided) {
  Node node = NodeBuilder::from_matrix({"mlx5_0", "nic0"}, {{"PIX", "NODE"}, {"NODE", "PIX"}});
  node.nics[1].unnamed = true;
  const Mapping mapping = map_nics(node, with_list(node, "mlx5_0:1"));
  EXPECT_EQ(mapping.undecided, "");
  ASSERT_EQ(mapping.pes[1].nics.size(), 1U);
  EXPECT_EQ(mapping.pes[1].nics[0].nic, 0);
}

TEST(HiddenNics, LeaveTheMappingUnknown) {
  Node node = NodeBuilder::from_matrix({"mlx5_0", "mlx5_1"}, {{"PIX", "NODE"}, {"NODE", "NODE"}});
  node.hidden_nics = 2;
  for (const Policy policy : {Policy::nvshmem, Policy::nccl, Policy::optimal}) {
    MappingRequest request = request_for(node);
    request.policy = policy;
    const Mapping mapping = map_nics(node, request);
    for (const PeMapping& pe : mapping.pes) {
      EXPECT_TRUE(pe.nics.empty());
      EXPECT_EQ(pe.reason, "unknown: 2 NICs of this node are not shown");
    }
    EXPECT_EQ(ids(checked(node, request)), "mapping-unknown(warning)");
    EXPECT_TRUE(advise(node, mapping).empty());
  }
  EXPECT_EQ(find(check_node(node), "gpu-without-nic"), nullptr) << "a hidden NIC may be near";
}

TEST(NoNicInAText, IsNoNodeWithoutNics) {
  const Node node = NodeBuilder::from_matrix({}, {{}, {}});
  const Findings findings = check_node(node);
  EXPECT_EQ(ids(findings), "gpu-without-nic(info)");
  EXPECT_TRUE(contains(findings[0].message, "this text lists no NIC"));
  EXPECT_FALSE(contains(findings[0].message, "cannot reach other nodes"));
  EXPECT_FALSE(contains(findings[0].fix, "mlx5_ib"));
}

TEST(DataDirectNames, AreFoundByTheVerbsNamesOfAList) {
  std::string xml = "<system version=\"1\"><cpu numaid=\"0\">";
  for (const char* pair : {"0", "1"})
    xml += std::string("<pci busid=\"0000:") + pair +
           "0:00.0\" class=\"0x060400\"><pci busid=\"0000:" + pair +
           "2:00.0\" class=\"0x030200\"><gpu dev=\"" + pair +
           "\"/></pci><pci busid=\"0000:" + pair +
           "3:00.0\" class=\"0x020700\"><nic><net name=\"mlx5_" + pair + "_dma\" dev=\"" + pair +
           "\" port=\"1\"/></nic></pci></pci>";
  const Node node = read_nccl_xml(xml + "</cpu></system>", "file");
  EXPECT_EQ(find(checked(node, with_list(node, "mlx5_0:1,mlx5_1:1")), "hca-unknown"), nullptr);
  const Mapping mapping = map_nics(node, with_list(node, "mlx5_0:1,mlx5_1:1"));
  EXPECT_EQ(mapping.table.unmatched.size(), 0U);
  EXPECT_EQ(mapping.table.entries.size(), 2U);
}

} // namespace
} // namespace shmemctl
