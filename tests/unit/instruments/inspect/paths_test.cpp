// NICs of processes against their GPUs, and against what their libraries would choose.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "src/instruments/inspect/paths.h"
#include "tests/support/node_builder.h"

namespace shmemctl::inspect {
namespace {

/// A node of switches with one GPU and one NIC each, and processes on it.
class PathsOfProcesses : public ::testing::Test {
protected:
  /// @param nic "" if it has no queue pair
  void process(int pid, int gpu, const std::string& nic, const std::string& visible = "") {
    owned_.emplace_back();
    Owned& owned = owned_.back();
    owned.process.pid = pid;
    owned.process.environment.emplace()["RANK"] = std::to_string(pid - 100);
    const Gpu& facts = node_.gpus.at(static_cast<std::size_t>(gpu));
    GpuUse use;
    use.index = gpu;
    use.address = node_.pci.at(static_cast<std::size_t>(facts.pci)).address;
    use.visible_index = gpu;
    if (!visible.empty())
      use.visible_index = std::stoi(visible);
    owned.gpus = {use};
    if (!nic.empty())
      all_.by_pid[pid].queue_pairs = {{nic, 1, "RC", "RTS", 7, 8}, {nic, 1, "RC", "RTS", 9, 10}};
  }
  void library(const char* kind, const std::string& version, const std::string& stem = "") {
    auto library = std::make_shared<Library>();
    library->kind = library_kind_of_id(kind);
    library->version = version;
    library->stem = stem;
    owned_.back().libraries.push_back(library);
  }
  PathJudgement judge(bool whole = true, const std::vector<PortLoad>& loads = {},
                      double window_s = 0) {
    std::vector<PathUser> users;
    for (const Owned& owned : owned_)
      users.push_back(
          {&owned.process, &owned.libraries, &all_.by_pid[owned.process.pid], owned.gpus});
    return judge_paths(node_, users, all_, whole, loads, window_s);
  }
  Findings findings(bool whole = true) { return judge(whole).findings; }

  struct Owned {
    Process process;
    Libraries libraries;
    std::vector<GpuUse> gpus;
  };
  Node node_ = shmemctl::testing::NodeBuilder::hgx(4).node;
  std::deque<Owned> owned_;
  RdmaResources all_;
};

TEST_F(PathsOfProcesses, EachOnItsNearestNic) {
  for (int rank = 0; rank < 4; ++rank)
    process(100 + rank, rank, "mlx5_" + std::to_string(rank));
  EXPECT_TRUE(findings().empty());
}

TEST_F(PathsOfProcesses, OneOnAFarNic) {
  process(100, 0, "mlx5_0");
  process(103, 3, "mlx5_0");
  const Findings found = findings();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, "nic-far");
  EXPECT_EQ(found[0].severity, Severity::warning);
  EXPECT_EQ(found[0].subject, "PID 103 (rank 3)");
  for (const char* words : {"GPU 3", "mlx5_0:1 (SYS, 2 queue pairs)", "mlx5_3:1"})
    EXPECT_NE(found[0].message.find(words), std::string::npos) << found[0].message;
}

TEST_F(PathsOfProcesses, AFarNicThatCarriesNothing) {
  process(103, 3, "mlx5_0");
  const PathJudgement idle = judge(true, {{"mlx5_0", 1, true, true, 1000, 1000}}, 1);
  ASSERT_EQ(idle.findings.size(), 1U);
  EXPECT_EQ(idle.findings[0].severity, Severity::info);
  const PathJudgement busy = judge(true, {{"mlx5_0", 1, true, true, 50000000, 0}}, 1);
  ASSERT_EQ(busy.findings.size(), 1U);
  EXPECT_EQ(busy.findings[0].severity, Severity::warning);
  EXPECT_NE(busy.findings[0].message.find("50.0 MB/s"), std::string::npos);
}

TEST_F(PathsOfProcesses, TwoThatExchangedTheirNics) {
  process(100, 0, "mlx5_1");
  process(101, 1, "mlx5_0");
  const Findings found = findings();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].id, "nic-far");
  EXPECT_EQ(found[1].id, "nic-far");
}

TEST_F(PathsOfProcesses, NoAlarmWhereNearNicsAreTaken) {
  // Two GPUs share a NIC; that of the third GPU, which no process uses, is further.
  shmemctl::testing::NodeBuilder builder;
  const int tree = builder.pcie_switch(builder.host_bridge(0));
  builder.gpu(tree);
  builder.gpu(tree);
  builder.nic(tree, "mlx5_0");
  const int other = builder.pcie_switch(builder.host_bridge(0));
  builder.gpu(other);
  builder.nic(other, "mlx5_1");
  node_ = builder.node;
  process(100, 0, "mlx5_0");
  process(101, 1, "mlx5_1");
  EXPECT_TRUE(findings().empty());
  // The other one goes further.
  all_.by_pid[100].queue_pairs[0].device = all_.by_pid[100].queue_pairs[1].device = "mlx5_1";
  all_.by_pid[101].queue_pairs[0].device = all_.by_pid[101].queue_pairs[1].device = "mlx5_0";
  EXPECT_TRUE(findings().empty());
  std::swap(all_.by_pid[100], all_.by_pid[101]);
  // One of them alone was inspected, and the other has its queue pairs all the same.
  owned_.pop_front();
  EXPECT_TRUE(findings(false).empty());
}

TEST_F(PathsOfProcesses, NoAlarmWithoutKnownFacts) {
  process(100, 3, "");
  process(101, 3, "mlx5_9"); // not in the node
  EXPECT_TRUE(findings().empty());
  all_.by_pid[100].queue_pairs = {{"mlx5_0", 1, "RC", "RESET", 7, {}}, // not connected
                                  {"mlx5_0", 0, "RC", "RTS", 8, {}}};  // of no known port
  EXPECT_TRUE(findings().empty());
  // A near one beside the far one: a library may use all.
  all_.by_pid[100].queue_pairs = {{"mlx5_0", 1, "RC", "RTS", 7, 8},
                                  {"mlx5_3", 1, "RC", "RTS", 9, 10}};
  EXPECT_TRUE(findings().empty());
  // Datagrams on all NICs beside connections on the right one: how UCX begins.
  all_.by_pid[100].queue_pairs = {{"mlx5_0", 1, "UD", "RTS", 7, {}},
                                  {"mlx5_3", 1, "RC", "RTS", 9, 10}};
  EXPECT_TRUE(findings().empty());
}

TEST_F(PathsOfProcesses, AProcessOfTwoGpusMayUseTheNicOfEither) {
  process(100, 3, "mlx5_0");
  GpuUse other = owned_.back().gpus[0];
  other.index = 0;
  other.address = node_.pci.at(static_cast<std::size_t>(node_.gpus[0].pci)).address;
  owned_.back().gpus.push_back(other);
  EXPECT_TRUE(findings().empty());
}

TEST_F(PathsOfProcesses, ANumberTakenForAPhysicalOne) {
  // CUDA_VISIBLE_DEVICES=3 makes GPU 3 number 0, and a library takes the NIC of GPU 0.
  process(100, 0, "mlx5_0", "0");
  process(103, 3, "mlx5_0", "0");
  const Findings found = findings();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, "gpu-index-confused");
  EXPECT_EQ(found[0].subject, "PID 103 (rank 3)");
  EXPECT_NE(found[0].message.find("next to its own is mlx5_3:1"), std::string::npos)
      << found[0].message;
}

TEST_F(PathsOfProcesses, NoConfusionWhereTheNicIsRightOrOtherwiseWrong) {
  process(103, 3, "mlx5_3", "0");
  EXPECT_TRUE(findings().empty());
  owned_.clear();
  process(103, 3, "mlx5_1", "0"); // far, and not the NIC of GPU 0 either
  const Findings found = findings();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, "nic-far");
}

TEST_F(PathsOfProcesses, AnotherNicThanNvshmemWouldChoose) {
  process(100, 0, "mlx5_0");
  library("nvshmem-host", "3.4.5");
  process(101, 1, "mlx5_2"); // as near as other NICs of the socket, but not the computed one
  library("nvshmem-host", "3.4.5");
  const PathJudgement judged = judge();
  ASSERT_EQ(judged.expected.size(), 2U);
  EXPECT_EQ(judged.expected.at(101).at(0).ports, std::vector<std::string>{"mlx5_1:1"});
  const auto differs =
      std::find_if(judged.findings.begin(), judged.findings.end(),
                   [](const Finding& each) { return each.id == "mapping-differs"; });
  ASSERT_NE(differs, judged.findings.end());
  EXPECT_EQ(differs->severity, Severity::warning);
  EXPECT_EQ(differs->subject, "PID 101 (rank 1)");
  EXPECT_NE(differs->message.find("NVSHMEM 3.4.5, world node: mlx5_1:1"), std::string::npos)
      << differs->message;
}

TEST_F(PathsOfProcesses, AVariableExplainsTheNic) {
  process(100, 0, "mlx5_2");
  library("nvshmem-host", "3.4.5");
  (*owned_.back().process.environment)["NVSHMEM_HCA_LIST"] = "mlx5_2:1";
  const PathJudgement judged = judge();
  EXPECT_EQ(judged.expected.at(100).at(0).ports, std::vector<std::string>{"mlx5_2:1"});
  for (const Finding& each : judged.findings)
    EXPECT_NE(each.id, "mapping-differs") << each.message;
}

TEST_F(PathsOfProcesses, NoDifferenceWhereTheChoiceIsNotComputed) {
  process(100, 0, "mlx5_1");
  library("nvshmem-host", "3.4.5");
  EXPECT_FALSE(findings().empty());
  const auto differences = [this](bool whole) {
    const Findings all = findings(whole);
    return std::count_if(all.begin(), all.end(),
                         [](const Finding& each) { return each.id == "mapping-differs"; });
  };
  EXPECT_EQ(differences(true), 1);
  EXPECT_EQ(differences(false), 0) << "others may belong to the job";
  library("ucx", "1.17.0", "libuct_ib");
  EXPECT_EQ(differences(true), 0) << "UCX may have made them";
  owned_.back().libraries.pop_back();
  library("nccl", "2.28.3");
  (*owned_.back().process.environment)["NCCL_IB_HCA"] = "mlx5";
  EXPECT_EQ(differences(true), 0) << "NCCL's choice by a prefix is not computed";
}

TEST_F(PathsOfProcesses, DeepEpInEitherOfItsModes) {
  for (int rank = 0; rank < 4; ++rank) {
    process(100 + rank, rank, "mlx5_" + std::to_string(rank));
    library("nvshmem-host", "3.4.5");
    library("deepep", "");
  }
  const PathJudgement judged = judge();
  EXPECT_TRUE(judged.findings.empty());
  EXPECT_EQ(judged.expected.at(100).size(), 2U);
}

TEST(InspectPaths, UsedPorts) {
  RdmaUse use;
  use.queue_pairs = {{"mlx5_10", 1, "RC", "RTS", 1, 2},
                     {"mlx5_2", 1, "RC", "RTS", 3, 4},
                     {"mlx5_2", 1, "RC", "RTR", 5, 6},
                     {"mlx5_2", 1, "GSI", "RTS", 1, {}},
                     {"mlx5_0", 1, "UD", "RTS", 7, {}}};
  auto ports = used_ports(use);
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[0].device, "mlx5_2");
  EXPECT_EQ(ports[0].queue_pairs, 2U);
  EXPECT_EQ(ports[1].device, "mlx5_10");
  use.queue_pairs.erase(use.queue_pairs.begin(), use.queue_pairs.begin() + 3);
  ports = used_ports(use);
  ASSERT_EQ(ports.size(), 1U);
  EXPECT_EQ(ports[0].device, "mlx5_0") << "datagrams, if there is nothing else";
  EXPECT_FALSE(needs_node({}));
}

} // namespace
} // namespace shmemctl::inspect
