// Processes of a recorded node: which are inspected, findings, and the report's section.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/text.h"
#include "reports/validate.h"
#include "src/instruments/inspect/inspect_report.h"
#include "tests/support/elf_image.h"
#include "tests/support/fake_machine.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl::inspect {
namespace {

class RecordedNode : public ::testing::Test {
protected:
  void SetUp() override {
    folder_.write("etc/passwd", "ann:x:1000:1000::/:\nbob:x:1001:1001::/:\n");
    fake::ElfImage nccl;
    nccl.texts = {"NCCL version 2.21.5", "NCCL_DEBUG"};
    folder_.write("opt/libnccl.so.2", nccl.bytes());
    process(10, 1000, "1-2 r--p 0 fd:01 12 /opt/libnccl.so.2\n", "RANK=0");
    process(11, 1000, "1-2 r--p 0 fd:01 12 /opt/libnccl.so.2\n", "RANK=1");
    process(12, 1001, "1-2 r--p 0 fd:01 13 /lib/libc.so.6\n", "X=1");
  }
  void process(int pid, int user, const std::string& maps, const std::string& variable) {
    const std::string folder = "proc/" + std::to_string(pid) + "/", id = std::to_string(user);
    folder_.write(folder + "stat",
                  std::to_string(pid) +
                      " (python3) S 1 1 1 0 -1 0 1 2 3 4 150 50 0 0 20 0 3 0 5 1 2\n");
    folder_.write(folder + "status", "Uid:\t" + id + "\t" + id + "\t" + id + "\t" + id + "\n");
    folder_.write(folder + "maps", maps);
    folder_.write(folder + "cmdline", std::string("python3\0--token\0abc\0", 20));
    folder_.write(folder + "environ", variable + '\0' + "NCCL_DEBUGG=INFO" + '\0');
  }
  Inspection inspect(const Selection& selection) {
    const Sysroot sysroot(folder_.path());
    return Inspector(sysroot).inspect(selection, 0);
  }
  TemporaryFolder folder_;
};

TEST_F(RecordedNode, AllAreThoseWithALibrary) {
  const Inspection all = inspect({});
  ASSERT_EQ(all.processes.size(), 2U);
  EXPECT_EQ(all.processes[1].process.pid, 11);
  EXPECT_EQ(inspect({{}, 1001U}).processes.size(), 0U);
  EXPECT_EQ(inspect({{}, 1000U}).processes.size(), 2U);
  EXPECT_EQ(inspect({{12}, {}}).processes.size(), 1U); // named: with or without a library
}

TEST_F(RecordedNode, TheSameFindingOfTwoProcessesIsOne) {
  const Inspection all = inspect({});
  ASSERT_EQ(all.findings.size(), 1U);
  EXPECT_EQ(all.findings[0].id, "env-ignored");
  EXPECT_EQ(all.findings[0].subject, "PID 10-11 (python3)");
}

TEST_F(RecordedNode, AProcessThatIsNotThere) {
  const Inspection found = inspect({{11, 99}, {}});
  ASSERT_EQ(found.missing.size(), 1U);
  EXPECT_EQ(found.missing[0].pid, 99);
  EXPECT_EQ(found.missing[0].reason, "no such process");
}

TEST_F(RecordedNode, TheReportsSectionFollowsTheSchema) {
  const Inspection found = inspect({{10, 11, 99}, {}});
  Report report;
  report.started_at = report.finished_at = utc_now();
  report.status = ReportStatus::complete;
  report.processes = processes_json(found, [](std::vector<std::string> words) {
    if (words.size() > 2)
      words[2] = "hidden";
    return words;
  });
  report.findings = found.findings;
  const nlohmann::json document = to_json(report);
  const Report again = report_from_json(document, "test");
  EXPECT_EQ(to_json(again), document);
  ASSERT_EQ(report.processes.size(), 3U);
  const nlohmann::json& first = report.processes[0];
  EXPECT_EQ(first["command"][2], "hidden");
  EXPECT_EQ(first["rank"], 0);
  EXPECT_EQ(first["user"], "ann");
  EXPECT_EQ(first["libraries"][0]["version"], "2.21.5");
  EXPECT_EQ(first["environment"][0]["status"], "ignored");
  EXPECT_EQ(first["environment"][0]["nearest"], "NCCL_DEBUG");
  EXPECT_EQ(report.processes[2]["skipped"][0]["reason"], "no such process");
  for (const bool verbose : {false, true}) {
    TextStyle style;
    style.verbose = verbose;
    const std::string text = processes_text(report.processes, style);
    for (const char* words : {"python3", "2.21.5", "/opt/libnccl.so.2", "10-11", "NCCL_DEBUGG",
                              "skipped: process of PID 99: no such process"})
      EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
  EXPECT_EQ(processes_text(nlohmann::json::array(), {}), "");
  EXPECT_TRUE(counter_rows(found, "host").empty());
}

TEST_F(RecordedNode, CountersOfAWindow) {
  Inspection found;
  PortLoad load;
  load.device = "mlx5_0";
  load.sent_bytes = 50;
  load.sent_before = 100;
  found.loads = {load};
  EXPECT_TRUE(counter_rows(found, "host").empty()); // not watched
  found.window_s = 1;
  const auto rows = counter_rows(found, "host");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].counter, "sent_bytes");
  EXPECT_EQ(rows[0].before, 100U);
  EXPECT_EQ(rows[0].after, 150U);
  EXPECT_EQ(rows[0].delta, 50);
  EXPECT_EQ(rows[1].delta, std::nullopt);
  EXPECT_FALSE(rows[1].reason.empty());
}

/// A process of GPU 0 whose queue pairs are on the NIC of another socket's GPU.
TEST(InspectRounds, APortThatComesUpIsInTheNextRound) {
  fake::FakeMachine machine;
  machine.add_hgx_node();
  machine.write("/proc/100/stat",
                "100 (python3) S 1 1 1 0 -1 0 1 2 3 4 150 50 0 0 20 0 3 0 5 1 2\n");
  machine.write("/proc/100/environ", std::string("RANK=0\0", 7));
  machine.write("/shmemctl/rdma/qp",
                "link mlx5_4/1 lqpn 200 rqpn 1200 type RC state RTS rq-psn 0 sq-psn 0 "
                "path-mig-state MIGRATED pid 100 comm python3\n");
  machine.write("/shmemctl/gpu-processes",
                "gpu 0 pci " + fake::FakeMachine::hgx_gpu(0) +
                    " uuid GPU-1\ngpu 0 pid 100 used-bytes 1000 busy-percent 90\n");
  const auto set_ports_of_the_first_socket = [&machine](const char* state) {
    for (const char* nic : {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"})
      machine.write(std::string("/sys/class/infiniband/") + nic + "/ports/1/state", state);
  };
  const Sysroot sysroot = machine.sysroot();
  Inspector inspector(sysroot);
  const auto ids = [&inspector] {
    std::vector<std::string> found;
    for (const Finding& finding : inspector.inspect({{100}, {}}, 0).findings)
      found.push_back(finding.id);
    return found;
  };
  using Ids = std::vector<std::string>;
  set_ports_of_the_first_socket("1: DOWN\n");
  EXPECT_EQ(ids(), Ids{});
  set_ports_of_the_first_socket("4: ACTIVE\n");
  EXPECT_EQ(ids(), Ids{"nic-far"});
  set_ports_of_the_first_socket("1: DOWN\n");
  EXPECT_EQ(ids(), Ids{});
}

} // namespace
} // namespace shmemctl::inspect
