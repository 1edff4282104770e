// What an archive of a fake machine has, and that the same is found in it.
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/file_tree.h"
#include "src/instruments/doctor/doctor.h"
#include "src/instruments/gather/gather.h"
#include "src/instruments/gather/recorded_files.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/writers/writer.h"
#include "tests/support/fake_machine.h"

namespace shmemctl::gather {
namespace {

Sysroot archived(const std::string& root, bool keep_names) {
  const Gathered gathered = gather(Sysroot(root), {keep_names, {}, ""}, [](const std::string&) {});
  EXPECT_TRUE(gathered.left_out.empty());
  EXPECT_GT(gathered.files, 0U);
  return Sysroot(std::make_shared<const FileTree>(read_archive(gathered.archive, "node.tar.zst")),
                 "node.tar.zst");
}

/// A node with GPUs, HCAs and what would tell whose it is.
void make_node(fake::FakeMachine& machine) {
  machine.add_hgx_node();
  machine.write("/proc/sys/kernel/hostname", "gpu-node-07\n");
  machine.write("/etc/hosts", "10.1.2.3 gpu-node-08.example.org gpu-node-08\n");
  machine.write("/proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
  machine.write("/etc/shadow", "secret of ann");
  machine.write("/home/ann/.ssh/id_ed25519", "secret of ann");
  machine.write("/etc/passwd",
                "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000:Ann:/home/ann:/bin/sh\n"
                "bob:x:1001:1001:Bob:/home/bob:/bin/sh\n");
  machine.write("/proc/4711/stat",
                "4711 (python3) S 1 1 1 0 -1 0 1 2 3 4 150 50 0 0 20 0 1 0 5 1 2\n");
  machine.write("/proc/4711/status", "Name:\tpython3\nUid:\t1000\t1000\t1000\t1000\n");
  machine.write("/proc/4711/cmdline",
                std::string("/home/ann/venv/bin/python3\0train.py\0--token=secret\0", 51));
  machine.write(
      "/proc/4711/environ",
      std::string("NCCL_DEBUG=INFO\0MASTER_ADDR=gpu-node-08\0API_TOKEN=secret\0HOME=/home/ann\0",
                  72));
  machine.write(
      "/proc/4711/maps",
      "7f0000000000-7f0000001000 r-xp 00000000 fd:01 100  /home/ann/lib/libnccl.so.2.21.5\n"
      "7f0000010000-7f0000011000 r-xp 00000000 fd:01 101  /home/ann/secret_model.so\n");
  machine.write("/home/ann/lib/libnccl.so.2.21.5", "not an ELF file: secret");
  machine.write(
      "/proc/4711/net/tcp",
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n"
      "   0: 0302010A:6DDD 0402010A:1F90 01 00000000:00000000 00:00000000 00000000  1000 0 5001 1\n"
      "   1: 0302010A:6DDE 0502010A:1F90 01 00000000:00000000 00:00000000 00000000  1001 0 5002 "
      "1\n");
  machine.symlink("/proc/4711/fd/3", "socket:[5001]");
  machine.symlink("/proc/4711/fd/4", "/home/ann/data/secret.bin");
  machine.symlink("/proc/4711/exe", "/home/ann/venv/bin/python3");
}

TEST(Gather, OnlyTheAllowListLeavesTheMachineAndNamesAreReplaced) {
  fake::FakeMachine machine;
  make_node(machine);
  const Gathered gathered =
      gather(Sysroot(machine.root()), {false, {}, ""}, [](const std::string&) {});
  EXPECT_EQ(gathered.processes, 1U);
  const FileTree tree = read_archive(gathered.archive, "node.tar.zst");
  for (const auto& [path, entry] : tree.entries())
    for (const char* word :
         {"secret", "gpu-node", "ann", "train.py", "bob", "0011:2233:4455:6677", "10.1.2.3"}) {
      EXPECT_EQ(path.find(word), std::string::npos) << path;
      // Words of what is said about the machine may contain "ann": "cannot".
      if (path != "/shmemctl/results.json") {
        EXPECT_EQ(entry.content.find(word), std::string::npos) << path << ": " << entry.content;
      }
    }
  ASSERT_NE(tree.find("/proc/4711/environ"), nullptr);
  EXPECT_EQ(tree.find("/proc/4711/environ")->content,
            std::string("NCCL_DEBUG=INFO\0MASTER_ADDR=host2\0", 34));
  ASSERT_NE(tree.find("/proc/4711/cmdline"), nullptr);
  EXPECT_EQ(tree.find("/proc/4711/cmdline")->content, std::string("python3\0[2 arguments]\0", 22));
  ASSERT_NE(tree.find("/proc/4711/fd/3"), nullptr);
  EXPECT_EQ(tree.find("/proc/4711/fd/4"), nullptr);
  ASSERT_NE(tree.find("/etc/passwd"), nullptr);
  EXPECT_EQ(tree.find("/etc/passwd")->content, "user1:x:1000:1000:::\n");
  const std::string sockets = tree.find("/proc/4711/net/tcp")->content;
  EXPECT_EQ(sockets.find("5002"), std::string::npos); // another process's
  EXPECT_EQ(sockets.find("0302010A"), std::string::npos);
  EXPECT_NE(sockets.find("0A:6DDD"), std::string::npos) << sockets; // 10.0.0.0/8 still
  EXPECT_EQ(tree.find("/etc/shadow"), nullptr);
}

TEST(Gather, NamesAreKeptWhenAsked) {
  fake::FakeMachine machine;
  make_node(machine);
  const Sysroot recorded = archived(machine.root(), true);
  EXPECT_EQ(recorded.read_line("/proc/sys/kernel/hostname"), "gpu-node-07");
  EXPECT_EQ(recorded.read("/proc/4711/cmdline"),
            std::string("/home/ann/venv/bin/python3\0train.py\0--token=secret\0", 51));
  EXPECT_EQ(recorded.read("/etc/shadow"), std::nullopt);
  EXPECT_EQ(recorded.read("/proc/4711/environ"),
            std::string("NCCL_DEBUG=INFO\0MASTER_ADDR=gpu-node-08\0", 40));
}

TEST(Gather, TheTopologyIsTheSame) {
  fake::FakeMachine machine;
  make_node(machine);
  const Sysroot recorded = archived(machine.root(), true);
  EXPECT_EQ(topology_json(read_machine(recorded)),
            topology_json(read_machine(Sysroot(machine.root()))));
}

/// As of a copy that has the kernel's lists: on a live machine they come by netlink.
TEST(Gather, RdmaResourcesOfProcessesAreRecorded) {
  fake::FakeMachine machine;
  make_node(machine);
  machine.write(
      "/shmemctl/rdma/qp",
      "link mlx5_0/1 lqpn 200 rqpn 300 type RC state RTS sq-psn 0 pid 4711 comm python3\n");
  machine.write("/shmemctl/rdma/cm_id", "link mlx5_0/1 cm-idn 3 state CONNECT pid 4711 "
                                        "src-addr 10.1.2.3:4711 dst-addr 10.1.2.4:80\n");
  const Sysroot recorded = archived(machine.root(), false);
  EXPECT_EQ(recorded.read("/shmemctl/rdma/qp"),
            "link mlx5_0/1 lqpn 200 rqpn 300 type RC state RTS pid 4711\n");
  const std::string connections = recorded.read("/shmemctl/rdma/cm_id").value_or("");
  EXPECT_NE(connections.find("state CONNECT pid 4711 src-addr "), std::string::npos) << connections;
  EXPECT_EQ(connections.find("10.1.2.3"), std::string::npos) << connections;
  EXPECT_EQ(recorded.read("/shmemctl/rdma/mr"), std::nullopt) << "nobody listed them";
}

TEST(Gather, DoctorsChecksNeedNoFileThatTheListLacks) {
  for (const bool keep_names : {true, false}) {
    fake::FakeMachine machine;
    make_node(machine);
    const auto results = recorded_results(archived(machine.root(), keep_names));
    ASSERT_TRUE(results);
    for (const auto& [id, result] : results->checks)
      ADD_FAILURE() << id << " differs without the machine (names kept: " << keep_names
                    << "): " << result.reason << ": extend recorded_files()";
    for (const Finding& finding : results->findings)
      ADD_FAILURE() << finding.id << ": " << finding.message;
  }
}

TEST(Gather, ResultsReadBackAsTheyWere) {
  LiveResults results;
  results.environment = {{"NCCL_DEBUG", "INFO"}};
  results.checks["cuda-driver"] = {CheckStatus::fail, "reason", "evidence", "fix"};
  results.findings = {{"rank-awaited", Severity::warning, "subject", "message", "fix"}};
  results.finding_ids = {"rank-awaited", "library-twice"};
  const LiveResults again = parse_results(results_text(results), "node.tar.zst");
  EXPECT_EQ(again.environment, results.environment);
  ASSERT_EQ(again.checks.count("cuda-driver"), 1U);
  EXPECT_EQ(again.checks.at("cuda-driver").status, CheckStatus::fail);
  EXPECT_EQ(again.checks.at("cuda-driver").evidence, "evidence");
  EXPECT_EQ(again.findings, results.findings);
  EXPECT_EQ(again.finding_ids, results.finding_ids);
  const Findings merged = with_recorded({{"library-twice", Severity::error, "a", "b", "c"},
                                         {"symbol-missing", Severity::error, "a", "b", "c"}},
                                        again);
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_EQ(merged[0].id, "symbol-missing");
  EXPECT_EQ(merged[1].id, "rank-awaited");
}

TEST(Gather, DamagedResultsAreRefused) {
  const std::string whole = results_text({});
  for (const std::string& text :
       {std::string(""), std::string("[]"), std::string("{}"), std::string("{\"format\": 2}"),
        std::string("{\"format\": 1}"), whole.substr(0, whole.size() / 2),
        std::string("{\"format\":1,\"environment\":{},\"checks\":{\"a\":{\"status\":\"odd\"}},"
                    "\"finding_ids\":[],\"findings\":[]}"),
        std::string("{\"format\":1,\"environment\":{},\"checks\":{},\"finding_ids\":[],"
                    "\"findings\":[7]}")})
    EXPECT_THROW(parse_results(text, "node.tar.zst"), Error) << text;
}

TEST(Gather, VariablesThatMayHoldSecretsAreNotRecorded) {
  for (const char* name :
       {"NVSHMEM_DEBUG", "NCCL_IB_HCA", "UCX_TLS", "RANK", "CUDA_VISIBLE_DEVICES"})
    EXPECT_TRUE(recorded_variable(name)) << name;
  for (const char* name : {"HOME", "PATH", "API_TOKEN", "NCCL_SECRET", "UCX_AUTH_KEY",
                           "AWS_ACCESS_KEY_ID", "PS1", "SLURM_JOB_USER"})
    EXPECT_FALSE(recorded_variable(name)) << name;
}

} // namespace
} // namespace shmemctl::gather
