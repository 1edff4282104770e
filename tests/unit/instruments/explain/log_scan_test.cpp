// What a log says of each rank, and what follows from it.
#include "src/instruments/explain/log_scan.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/instruments/explain/explanation.h"

using namespace shmemctl;
using namespace shmemctl::explain;

namespace {

const Catalogue& scan_catalogue() {
  static const Catalogue catalogue = [] {
    Catalogue made;
    made.add(log_messages_text(), "built in");
    return made;
  }();
  return catalogue;
}

LogFacts facts_of_text(const std::string& text, const std::string& name = "job.log") {
  LogScan scan(scan_catalogue());
  scan.scan_text(name, text);
  return scan.facts();
}

/// One rank of an NCCL job on a host with two NICs, up to the end of its start.
std::string nccl_rank(int rank, int ranks, int nic, bool completes = true) {
  const std::string head = fmt::format("node1:{}:{} [{}] NCCL INFO ", 100 + rank, 200 + rank, rank);
  const std::string comm =
      fmt::format("comm 0x55d1 rank {} nranks {} cudaDev {} nvmlDev {} busId {}d000 commId 0x7a",
                  rank, ranks, rank, rank, rank + 1);
  std::string text =
      head + "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n" +
      head + "Using network IB\n" + head + "ncclCommInitRank " + comm + " - Init START\n" + head +
      fmt::format("NET/IB: NCCL Dev {} IbDev {} Port 1 qpn 77 mtu 5 GID 3 (80FE/1A8A)\n", nic,
                  nic) +
      head +
      fmt::format("Channel 00/0 : {}[{}] -> {}[0] [send] via NET/IB/{}/GDRDMA\n", rank, rank,
                  rank + ranks, nic) +
      head +
      fmt::format("Channel 00/0 : {}[{}] -> {}[{}] via P2P/CUMEM/read\n", rank, rank, rank + 1,
                  rank + 1);
  if (completes)
    text += head + "Connected all rings, use ring PXN 0 GDR 1\n" + head + "ncclCommInitRank " +
            comm + " - Init COMPLETE\n";
  return text;
}

std::vector<std::string> ids_in(const Findings& findings) {
  std::vector<std::string> ids;
  for (const Finding& finding : findings)
    ids.push_back(finding.id);
  return ids;
}

const Finding* finding_in(const Findings& findings, const std::string& id) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&id](const Finding& each) { return each.id == id; });
  return found == findings.end() ? nullptr : &*found;
}

TEST(LogScan, AnNcclRankTellsItsNicPortGidAndTransport) {
  const LogFacts facts = facts_of_text(nccl_rank(0, 2, 1) + nccl_rank(1, 2, 0));
  ASSERT_EQ(facts.ranks.size(), 2u);
  const RankLog& log = facts.ranks[0];
  EXPECT_EQ(log.name, "rank 0");
  EXPECT_EQ(log.rank, 0);
  EXPECT_EQ(log.host, "node1");
  EXPECT_EQ(log.setup.nranks, 2);
  ASSERT_TRUE(log.setup.gpu);
  EXPECT_EQ(to_string(*log.setup.gpu), "0000:1d:00.0");
  ASSERT_EQ(log.setup.choices.size(), 2u);
  const Choice& nic = log.setup.choices[0];
  EXPECT_EQ(nic.transport, "NET/IB");
  EXPECT_EQ(nic.device, "mlx5_1");
  EXPECT_EQ(nic.port, 1);
  EXPECT_EQ(nic.gid_index, 3);
  EXPECT_EQ(nic.link, "RoCE");
  EXPECT_EQ(nic.gpu_direct, true);
  EXPECT_EQ(nic.first.line, 5u);
  EXPECT_EQ(log.setup.choices[1].transport, "P2P/CUMEM");
  EXPECT_EQ(facts.ranks[1].setup.choices[0].device, "mlx5_0");
  EXPECT_TRUE(findings_of(facts, scan_catalogue(), nullptr).empty());
}

TEST(LogScan, TheNicOfAProxyIsAnotherRanks) {
  std::string text = nccl_rank(0, 8, 0);
  text += "node1:100:200 [0] NCCL INFO Channel 01/0 : 0[0] -> 9[1] [send] via NET/IB/1(5)/GDRDMA\n";
  const LogFacts facts = facts_of_text(text);
  ASSERT_EQ(facts.ranks[0].setup.choices.size(), 3u);
  EXPECT_EQ(facts.ranks[0].setup.choices[2].by_rank, 5);
  EXPECT_TRUE(hot_spots_of(facts, nullptr).empty());
}

TEST(LogScan, ASmallerCommunicatorDoesNotRenumberARank) {
  std::string text = nccl_rank(5, 8, 0);
  text += "node1:105:205 [5] NCCL INFO ncclCommSplit comm 0x66 rank 1 nranks 2 cudaDev 5 nvmlDev 5 "
          "busId 6d000 parent 0x55d1 color 1 key 1 - Init START\n";
  EXPECT_EQ(facts_of_text(text).ranks[0].rank, 5);
}

TEST(LogScan, SeveralRanksOnOneNicWhileAnotherIsIdleAreAHotSpot) {
  const LogFacts facts = facts_of_text(nccl_rank(0, 2, 0) + nccl_rank(1, 2, 0));
  const std::vector<LogHotSpot> spots = hot_spots_of(facts, nullptr);
  ASSERT_EQ(spots.size(), 1u);
  EXPECT_EQ(spots[0].device, "mlx5_0");
  EXPECT_EQ(spots[0].ranks, (std::vector<std::string>{"rank 0", "rank 1"}));
  EXPECT_EQ(spots[0].idle, std::vector<std::string>{"mlx5_1/1"});
  const Findings findings = findings_of(facts, scan_catalogue(), nullptr);
  EXPECT_EQ(ids_in(findings), std::vector<std::string>{"nic-hotspot-logged"});
}

/// A host with two GPUs, each with a NIC behind its own switch.
Node two_gpus_two_nics() {
  Node node;
  node.hostname = "node1";
  for (int i = 0; i < 2; ++i) {
    PciDevice gpu, nic;
    gpu.address = *parse_pci_address(fmt::format("0000:{}d:00.0", i + 1));
    nic.address = *parse_pci_address(fmt::format("0000:{}e:00.0", i + 1));
    node.pci.push_back(gpu);
    node.pci.push_back(nic);
    Gpu of_node;
    of_node.index = i;
    of_node.pci = 2 * i;
    of_node.vendor = "nvidia";
    node.gpus.push_back(of_node);
    Nic card;
    card.name = fmt::format("mlx5_{}", i);
    card.pci = 2 * i + 1;
    card.rdma = known(true, "test");
    node.nics.push_back(card);
  }
  const Distance self{PathClass::self, 0, ""}, near{PathClass::pix, 0, ""},
      far{PathClass::sys, 0, ""};
  node.recorded = DistanceMatrix{{self, far, near, far},
                                 {far, self, far, near},
                                 {near, far, self, far},
                                 {far, near, far, self}};
  return node;
}

TEST(LogScan, ANicThatIsFarInTheTopologyIsNamedWithTheNearerOne) {
  const Node node = two_gpus_two_nics();
  const LogFacts crossed = facts_of_text(nccl_rank(0, 2, 1) + nccl_rank(1, 2, 0));
  const std::vector<ChosenDistance> distances = distances_of(crossed, node);
  ASSERT_EQ(distances.size(), 2u);
  EXPECT_EQ(distances[0].gpu, 0);
  EXPECT_EQ(distances[0].nic, 1);
  EXPECT_EQ(distances[0].distance.path, PathClass::sys);
  const Findings findings = findings_of(crossed, scan_catalogue(), &node);
  EXPECT_EQ(ids_in(findings),
            (std::vector<std::string>{"nic-far", "nic-far", "mapping-differs", "mapping-differs"}));
  EXPECT_NE(findings[0].message.find("mlx5_0 is nearer"), std::string::npos) << findings[0].message;

  const LogFacts straight = facts_of_text(nccl_rank(0, 2, 0) + nccl_rank(1, 2, 1));
  EXPECT_TRUE(findings_of(straight, scan_catalogue(), &node).empty());
}

TEST(LogScan, ARankThatUsesAnotherNicThanComputedIsNamed) {
  const Node node = two_gpus_two_nics();
  const LogFacts facts = facts_of_text(nccl_rank(0, 2, 0) + nccl_rank(1, 2, 0));
  const std::vector<MappingDifference> differences = mapping_differences_of(facts, node, {});
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(facts.ranks[differences[0].rank].name, "rank 1");
  EXPECT_EQ(differences[0].library, "NCCL");
  EXPECT_EQ(differences[0].gpu, 1);
  EXPECT_EQ(differences[0].used, std::vector<int>{0});
  EXPECT_EQ(differences[0].computed, std::vector<int>{1});
  const Findings findings = findings_of(facts, scan_catalogue(), &node);
  const Finding* const finding = finding_in(findings, "mapping-differs");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->subject, "rank 1");
  EXPECT_NE(finding->message.find("uses mlx5_0 for GPU 1 (NCCL)"), std::string::npos)
      << finding->message;
  EXPECT_NE(finding->message.find("computes mlx5_1"), std::string::npos) << finding->message;

  // The NIC of a proxy on another GPU is that rank's, and a GPU that two jobs use says nothing.
  EXPECT_TRUE(
      mapping_differences_of(facts_of_text(nccl_rank(0, 2, 0) + nccl_rank(1, 2, 1)), node, {})
          .empty());
  std::string twice = nccl_rank(0, 2, 1);
  for (std::size_t at = twice.find("node1:100:"); at != std::string::npos;
       at = twice.find("node1:100:", at + 1))
    twice.replace(at, 10, "node1:700:");
  EXPECT_TRUE(mapping_differences_of(facts_of_text(nccl_rank(0, 2, 1) + twice), node, {}).empty());
}

TEST(LogScan, TheNicOfTheGpuWithTheVisibleNumberIsAConfusedIndex) {
  const Node node = two_gpus_two_nics();
  // Its only visible GPU is the second, which CUDA numbers 0, and it takes the NIC of the first.
  std::string text = nccl_rank(1, 2, 0);
  text.replace(text.find("cudaDev 1"), 9, "cudaDev 0");
  text.replace(text.find("cudaDev 1"), 9, "cudaDev 0");
  const Findings findings = findings_of(facts_of_text(text), scan_catalogue(), &node);
  const Finding* const finding = finding_in(findings, "gpu-index-confused");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->subject, "rank 1");
  EXPECT_NE(finding->message.find("GPU 1, which CUDA_VISIBLE_DEVICES makes its GPU 0"),
            std::string::npos)
      << finding->message;
  EXPECT_FALSE(finding_in(findings, "nic-far"));
}

TEST(LogScan, SocketsAreNoProblemOfANodeWithoutRdma) {
  const auto log_of = [](const std::string& host) {
    return host + ":100:200 [0] NCCL INFO NET/IB : No device found.\n" + host +
           ":100:200 [0] NCCL INFO Using network Socket\n";
  };
  const auto severities = [](const std::string& text, const Node* node) {
    std::set<Severity> all;
    for (const Finding& finding : findings_of(facts_of_text(text), scan_catalogue(), node))
      all.insert(finding.severity);
    return all;
  };
  using Set = std::set<Severity>;
  Node without;
  without.hostname = "node1.example.org";
  Nic ethernet;
  ethernet.name = "eth0";
  ethernet.rdma = known(false, "test");
  without.nics = {ethernet};
  without.pci.resize(1);
  EXPECT_EQ(severities(log_of("node1"), nullptr), Set{Severity::warning});
  EXPECT_EQ(severities(log_of("node1"), &without), Set{Severity::info});
  EXPECT_EQ(severities(log_of("node1") + log_of("node2"), &without), Set{Severity::warning})
      << "the other node may have some";
  Node unknown_nic = without, with = without, hidden = without, unlisted;
  unknown_nic.nics[0].rdma = unknown<bool>("test");
  EXPECT_EQ(severities(log_of("node1"), &unknown_nic), Set{Severity::warning});
  with.nics.push_back(ethernet);
  with.nics[1].rdma = known(true, "test");
  EXPECT_EQ(severities(log_of("node1"), &with), Set{Severity::warning});
  hidden.nics[0].driver = known<std::string>("mlx5_core", "test");
  EXPECT_EQ(severities(log_of("node1"), &hidden), Set{Severity::warning})
      << "a NIC whose RDMA device the container does not have";
  EXPECT_EQ(severities(log_of("node1"), &unlisted), Set{Severity::warning})
      << "no device is listed";
  const LogFacts facts = facts_of_text(log_of("node1"));
  for (const auto& message : to_json(facts, scan_catalogue(), &without)["messages"])
    EXPECT_EQ(message["severity"], "info");
}

TEST(LogScan, UcxOverTcpOnANodeWithRdmaIsAFallback) {
  const Node node = two_gpus_two_nics();
  const auto ids = [](const std::string& lanes, const Node* compared) {
    return ids_in(findings_of(
        facts_of_text("[1764201600.1] [node1:7:0]  ucp_worker.c:1855 UCX  INFO    ep_cfg[1]: " +
                      lanes + "\n"),
        scan_catalogue(), compared));
  };
  EXPECT_EQ(ids("tag(tcp/eth0)", &node), std::vector<std::string>{"tcp-fallback"});
  EXPECT_TRUE(ids("tag(tcp/eth0)", nullptr).empty());
  EXPECT_TRUE(ids("tag(rc_mlx5/mlx5_0:1 tcp/eth0)", &node).empty());
  EXPECT_TRUE(ids("tag(self/memory sysv/memory)", &node).empty());
  Node without = node;
  without.nics.clear();
  EXPECT_TRUE(ids("tag(tcp/eth0)", &without).empty());
}

TEST(LogScan, ANicThatTheTopologyLacksIsSaid) {
  Node node = two_gpus_two_nics();
  node.nics[1].name = "mlx5_9";
  const LogFacts facts = facts_of_text(nccl_rank(0, 2, 0) + nccl_rank(1, 2, 1));
  EXPECT_EQ(ids_in(findings_of(facts, scan_catalogue(), &node)),
            std::vector<std::string>{"log-nic-unknown"});
  node.hostname = "node2"; // of another machine: nothing to compare
  EXPECT_TRUE(findings_of(facts, scan_catalogue(), &node).empty());
}

TEST(LogScan, ARankThatLacksAStepOfTheOthersEndsEarly) {
  std::string text;
  for (int rank = 0; rank < 4; ++rank)
    text += nccl_rank(rank, 4, rank % 2, rank != 2);
  const LogFacts facts = facts_of_text(text);
  const std::vector<EarlyEnd> ends = early_ends_of(facts, scan_catalogue());
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(facts.ranks[ends[0].rank].name, "rank 2");
  EXPECT_EQ(scan_catalogue().steps()[ends[0].step].id, "nccl-rings-connected");
  EXPECT_EQ(ends[0].with_step, 3u);
  const Findings findings = findings_of(facts, scan_catalogue(), nullptr);
  const Finding* const finding = finding_in(findings, "log-ends-early");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->subject, "rank 2");
}

TEST(LogScan, ARankWithoutAnyLineIsMissing) {
  std::string text;
  for (const int rank : {0, 1, 3})
    text += nccl_rank(rank, 4, rank % 2);
  EXPECT_EQ(ranks_without_lines(facts_of_text(text)), std::vector<int>{2});
  // The log of one node of two is no sign of that.
  EXPECT_TRUE(ranks_without_lines(facts_of_text(nccl_rank(0, 4, 0) + nccl_rank(1, 4, 1))).empty());
}

TEST(LogScan, InterleavedRanksAreToldApartByTheirTags) {
  const LogFacts facts = facts_of_text("[1,0]<stderr>:n1:7:7 [0] NCCL INFO Using network IB\r\n"
                                       "[1,1]<stderr>:n1:8:8 [0] NCCL INFO Using network Socket\r\n"
                                       "[1,0]<stderr>:\x1b[31mn1:7:9 [0] x.cc:1 NCCL WARN NET/IB : "
                                       "mlx5_3:1 GID table changed\x1b[0m\r\n");
  ASSERT_EQ(facts.ranks.size(), 2u);
  EXPECT_EQ(facts.ranks[0].setup.network, "IB");
  EXPECT_EQ(facts.ranks[1].process, "n1:8");
  ASSERT_EQ(facts.known.size(), 2u);
  EXPECT_EQ(facts.known[0].ranks, std::vector<std::string>{"rank 1"});
  EXPECT_EQ(facts.known[1].ranks, std::vector<std::string>{"rank 0"});
  EXPECT_EQ(facts.known[1].text.find('\x1b'), std::string::npos);
}

TEST(LogScan, LabelsOfSrunCountOnlyWhereTheFirstLineHasOne) {
  EXPECT_EQ(facts_of_text("0: a\n1: n1:8:8 [0] NCCL INFO Using network IB\n").ranks.size(), 2u);
  const LogFacts without = facts_of_text("start\n1: Using something\n");
  EXPECT_TRUE(without.ranks.empty());
}

TEST(LogScan, PyTorchsLinesAndNcclsOfOneRankAreOneRank) {
  const LogFacts facts = facts_of_text(
      nccl_rank(3, 8, 0) +
      "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"a.py\", line 3, in f\n"
      "[rank3]: RuntimeError: DeepEP error: timeout (dispatch CPU)\n");
  ASSERT_EQ(facts.ranks.size(), 1u);
  EXPECT_EQ(facts.ranks[0].process, "node1:103");
  ASSERT_EQ(facts.known.size(), 1u);
  EXPECT_EQ(scan_catalogue().messages()[facts.known[0].message].id, "deepep-cpu-timeout");
  EXPECT_EQ(facts.known[0].first.line, 11u);
  EXPECT_TRUE(facts.unknown.empty());
}

TEST(LogScan, AnUnknownErrorIsShownOnceWithItsNumber) {
  const LogFacts facts =
      facts_of_text("n1:7:7 [0] made.cc:1 NCCL WARN Frobnication 17 failed at 0x7f01\n"
                    "n1:7:7 [0] made.cc:1 NCCL WARN Frobnication 18 failed at 0x7fab\n"
                    "Traceback (most recent call last):\n  File \"a.py\", line 3, in "
                    "f\nValueError: no such thing\n"
                    "ValueError: outside of a traceback\n");
  ASSERT_EQ(facts.unknown.size(), 2u);
  EXPECT_EQ(facts.unknown[0].count, 2u);
  EXPECT_EQ(facts.unknown[0].severity, Severity::warning);
  EXPECT_NE(facts.unknown[0].text.find("Frobnication 17"), std::string::npos);
  EXPECT_EQ(facts.unknown[1].library, "Python");
  EXPECT_EQ(facts.unknown[1].count, 1u);
  EXPECT_EQ(facts.unknown[1].severity, Severity::error);
  const Findings findings = findings_of(facts, scan_catalogue(), nullptr);
  EXPECT_EQ(ids_in(findings), (std::vector<std::string>{"log-unknown-error", "log-unknown-error"}));
  EXPECT_EQ(findings[0].severity, Severity::error);
}

TEST(LogScan, NvshmemTellsItsDevicesBeforeItChooses) {
  const LogFacts facts = facts_of_text(
      "/src/ibgda.cpp 1634 Enumerated IB devices in the system - device id=0 (of 2), name=mlx5_4, "
      "num_ports=1\n"
      "/src/ibgda.cpp 1634 Enumerated IB devices in the system - device id=1 (of 2), name=mlx5_5, "
      "num_ports=1\n"
      "/src/ibgda.cpp 1732 Ordered list of devices for assignment - idx=0 (of 2), device id=0, "
      "port_num=1\n"
      "/src/ibgda.cpp 1732 Ordered list of devices for assignment - idx=1 (of 2), device id=1, "
      "port_num=1\n"
      "n1:7:7 [0] NVSHMEM INFO PE 6 (process) affinity to 4 CPUs:\n"
      "n1:7:7 [0] NVSHMEM INFO Successfully initialized the transport: IBGDA. It will be used\n"
      "n1:7:7 [0] NVSHMEM INFO NVSHMEM_ENABLE_NIC_PE_MAPPING = 0, device 0 setting dev_id = 1\n");
  ASSERT_EQ(facts.ranks.size(), 1u) << "lines without a process are of the only one";
  EXPECT_EQ(facts.ranks[0].rank, 6);
  ASSERT_EQ(facts.ranks[0].setup.choices.size(), 1u);
  EXPECT_EQ(facts.ranks[0].setup.choices[0].device, "mlx5_5");
  EXPECT_EQ(facts.ranks[0].setup.choices[0].port, 1);
  EXPECT_EQ(facts.ranks[0].setup.choices[0].transport, "IBGDA");
}

TEST(LogScan, LinesWithoutAProcessCompleteTheChoicesOfTheirRank) {
  const LogFacts nvshmem = facts_of_text(
      "n1:7:7 [0] NVSHMEM INFO PE 6 (process) affinity to 4 CPUs:\n"
      "n1:7:7 [0] NVSHMEM INFO Ordered list of devices for assignment - idx=1 (of 2), device "
      "id=1, port_num=1\n"
      "n1:7:7 [0] NVSHMEM INFO NVSHMEM_ENABLE_NIC_PE_MAPPING = 0, device 0 setting dev_id = 1\n"
      "/src/ibgda.cpp 1634 Enumerated IB devices in the system - device id=1 (of 2), name=mlx5_5, "
      "num_ports=1\n"
      "Successfully initialized the transport: IBGDA. It will be used\n");
  ASSERT_EQ(nvshmem.ranks.size(), 1u);
  ASSERT_EQ(nvshmem.ranks[0].setup.choices.size(), 1u);
  EXPECT_EQ(nvshmem.ranks[0].setup.choices[0].device, "mlx5_5");
  EXPECT_EQ(nvshmem.ranks[0].setup.choices[0].transport, "IBGDA");
  const std::string head = "node1:100:200 [0] NCCL INFO ";
  const LogFacts nccl = facts_of_text(
      head + "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n" +
      head + "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/1/GDRDMA\n" +
      "NET/IB: NCCL Dev 1 IbDev 1 Port 1 qpn 77 mtu 5 GID 3 (80FE/1A8A)\n");
  ASSERT_EQ(nccl.ranks.size(), 1u);
  ASSERT_EQ(nccl.ranks[0].setup.choices.size(), 1u);
  EXPECT_EQ(nccl.ranks[0].setup.choices[0].device, "mlx5_1");
  EXPECT_EQ(nccl.ranks[0].setup.choices[0].gid_index, 3);
}

TEST(LogScan, UcxTellsTransportAndDeviceOfEachLane) {
  const LogFacts facts =
      facts_of_text("[1764201600.123456] [n1:7:0]   ucp_worker.c:1855 UCX  INFO    ep_cfg[1]: "
                    "tag(self/memory rc_mlx5/mlx5_0:1); rma(tcp/eth0)\n"
                    "[1764201600.123456] [n1:7:0]   ucp_worker.c:1999 UCX  INFO  ucp_context_0 "
                    "inter-node cfg#2 tag(rc_mlx5/mlx5_1:1/path0)\n");
  ASSERT_EQ(facts.ranks.size(), 1u);
  const std::vector<Choice>& choices = facts.ranks[0].setup.choices;
  ASSERT_EQ(choices.size(), 4u);
  EXPECT_EQ(choices[0].transport, "self");
  EXPECT_EQ(choices[0].device, "");
  EXPECT_EQ(choices[1].device, "mlx5_0");
  EXPECT_EQ(choices[1].port, 1);
  EXPECT_EQ(choices[2].transport, "tcp");
  EXPECT_EQ(choices[2].device, "eth0");
  EXPECT_EQ(choices[3].device, "mlx5_1");
}

TEST(LogScan, UcxTellsTheGidOfAPortBeforeOrAfterItsLanes) {
  const std::string gid = "[1764201600.1] [n1:7:0]  ib_device.c:1209 UCX  DEBUG mlx5_0:1 using "
                          "gid_index=3 ver=2 addr_family=2\n";
  const std::string lanes = "[1764201600.2] [n1:7:0]  ucp_worker.c:1855 UCX  INFO    ep_cfg[1]: "
                            "rma(rc_mlx5/mlx5_0:1;rc_mlx5/mlx5_1:1)\n";
  for (const std::string& text : {gid + lanes, lanes + gid}) {
    const LogFacts facts = facts_of_text(text);
    ASSERT_EQ(facts.ranks.size(), 1u);
    const std::vector<Choice>& choices = facts.ranks[0].setup.choices;
    ASSERT_EQ(choices.size(), 2u);
    EXPECT_EQ(choices[0].gid_index, 3);
    EXPECT_FALSE(choices[1].gid_index) << "another port's";
  }
}

TEST(LogScan, NvshmemTellsAGidThatIsSetByHandOnly) {
  const auto choice_with = [](const std::string& value) {
    const LogFacts facts = facts_of_text(
        "n1:7:7 [0] NVSHMEM INFO Successfully initialized the transport: IBRC. It will be used\n"
        "n1:7:7 [0] NVSHMEM INFO NVSHMEM_ENABLE_NIC_PE_MAPPING = 0, device 0 setting dev_id = 1\n"
        "  NVSHMEM_IB_GID_INDEX         " +
        value + " (type: int, default: -1)\n");
    return facts.ranks.at(0).setup.choices.at(0).gid_index;
  };
  EXPECT_EQ(choice_with("3"), 3);
  EXPECT_FALSE(choice_with("-1"));
}

TEST(LogScan, APortOfEfaHasOneGid) {
  const LogFacts facts = facts_of_text(
      "libfabric:7:1:core:core:fi_fabric_():1264<info> Opened fabric: efa\n"
      "libfabric:7:1:efa:ep_ctrl:efa_base_ep_getname():757<info> EP addr: GID[fe80::4c:1ff:fe02:3] "
      "QP[1] QKEY[7] (length 32)\n");
  ASSERT_EQ(facts.ranks.size(), 1u);
  ASSERT_EQ(facts.ranks[0].setup.choices.size(), 1u);
  EXPECT_EQ(facts.ranks[0].setup.choices[0].gid_index, 0);
}

TEST(LogScan, AnyBytesGiveTextThatIsUtf8) {
  std::mt19937 random(11);
  std::string text = "n1:7:7 [0] NCCL WARN \xff\x00\xc3 broken\n";
  for (int i = 0; i < 20000; ++i)
    text += static_cast<char>(random());
  text += "\nUCX  ERROR \xed\xa0\x80\n[rank9999999999]: x\n";
  const LogFacts facts = facts_of_text(text, "a\xff.log");
  const nlohmann::json document = to_json(facts, scan_catalogue(), nullptr);
  EXPECT_NO_THROW(document.dump()) << "dump() throws where a string is not UTF-8";
  for (const Finding& finding : findings_of(facts, scan_catalogue(), nullptr))
    EXPECT_FALSE(first_non_utf8(finding.message)) << finding.id;
}

TEST(LogScan, TwoJobsInOneLogKeepTheirRanksApart) {
  std::string second = nccl_rank(0, 2, 0);
  for (std::size_t at = second.find("node1:"); at != std::string::npos;
       at = second.find("node1:", at + 1))
    second.replace(at, 6, "node7:");
  const LogFacts facts = facts_of_text(nccl_rank(0, 2, 0) + second);
  ASSERT_EQ(facts.ranks.size(), 2u);
  EXPECT_EQ(facts.ranks[0].name, "rank 0 (node1:100)");
  EXPECT_EQ(facts.ranks[1].name, "rank 0 (node7:100)");
}

} // namespace
