// Ports that processes have open, and what went over the NICs.
#include <gtest/gtest.h>

#include "src/instruments/inspect/network.h"
#include "src/instruments/inspect/rights.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl::inspect {
namespace {

PortLoad rdma_load(const std::string& device, std::uint64_t bytes) {
  return {device, 1, true, true, bytes, bytes};
}

/// A process with NCCL, a connection to another host and these devices open.
struct ProcessOnNetwork {
  explicit ProcessOnNetwork(std::vector<std::string> devices_open) : devices(devices_open) {
    process.pid = 42;
    process.connections = {{"10.0.0.1:50001", "10.0.0.2:50002", "established", false, 0, 1}};
    auto library = std::make_shared<Library>();
    library->kind = library_kind_of_id("nccl");
    libraries = {library};
  }
  NetworkUser user() const { return {&process, &libraries, devices, rdma ? &*rdma : nullptr}; }

  Process process;
  Libraries libraries;
  std::vector<std::string> devices;
  std::optional<RdmaUse> rdma;
};

TEST(InspectNetwork, CountersOfAMachine) {
  const TemporaryFolder folder;
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  folder.write(port + "state", "4: ACTIVE\n");
  folder.write(port + "counters/port_xmit_data", "25\n");
  folder.write(port + "counters/port_rcv_data", "50\n");
  folder.write("sys/class/infiniband/rdmap0/ports/1/state", "1: DOWN\n");
  folder.write("sys/class/infiniband/rdmap0/ports/1/hw_counters/tx_bytes", "7\n");
  folder.write("proc/9/net/dev", "Inter-|   Receive\n face |bytes\n    lo: 1 0 0 0 0 0 0 0 1 0\n"
                                 "  eth0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n");
  const auto ports = read_port_bytes(Sysroot(folder.path()), 9);
  ASSERT_EQ(ports.size(), 3U);
  EXPECT_EQ(ports[0].device, "mlx5_0");
  EXPECT_TRUE(ports[0].active);
  EXPECT_EQ(ports[0].sent_bytes, 100U);
  EXPECT_EQ(ports[0].received_bytes, 200U);
  EXPECT_FALSE(ports[1].active);
  EXPECT_EQ(ports[1].sent_bytes, 7U);
  EXPECT_EQ(ports[1].received_bytes, std::nullopt);
  EXPECT_EQ(ports[2].device, "eth0");
  EXPECT_EQ(ports[2].sent_bytes, 2000U);
  auto later = ports;
  later[0].sent_bytes = 150;
  later[2].sent_bytes = 5; // set back
  const auto loads = load_between(ports, later);
  EXPECT_EQ(loads[0].sent_bytes, 50U);
  EXPECT_EQ(loads[0].sent_before, 100U);
  EXPECT_EQ(loads[2].sent_bytes, std::nullopt);
}

TEST(InspectNetwork, DevicesOfDescriptors) {
  const TemporaryFolder folder;
  folder.write("sys/class/infiniband_verbs/uverbs3/ibdev", "mlx5_2\n");
  Process process;
  process.devices = {{5, "/dev/infiniband/uverbs3"},
                     {6, "/dev/infiniband/uverbs3"},
                     {7, "/dev/infiniband/uverbs10"},
                     {8, "/dev/infiniband/rdma_cm"},
                     {9, "/dev/nvidia0"}};
  EXPECT_EQ(open_rdma_devices(Sysroot(folder.path()), process),
            (std::vector<std::string>{"mlx5_2", "uverbs10"}));
}

TEST(InspectNetwork, FallbackToTcp) {
  const ProcessOnNetwork process({});
  std::vector<PortLoad> loads = {rdma_load("mlx5_0", 0), {"eth0", 1, false, true, 50000000, 0}};
  Findings findings = network_findings({process.user()}, loads, 1);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "tcp-fallback");
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_EQ(findings[0].subject, "PID 42");
  EXPECT_NE(findings[0].message.find("10.0.0.2:50002"), std::string::npos);
  findings = network_findings({process.user()}, loads, 0);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::info); // not watched
}

TEST(InspectNetwork, NoFallback) {
  const std::vector<PortLoad> loads = {rdma_load("mlx5_0", 0),
                                       {"eth0", 1, false, true, 50000000, 0}};
  EXPECT_TRUE(network_findings({ProcessOnNetwork({"mlx5_0"}).user()}, loads, 1).empty());
  ProcessOnNetwork alone({});
  alone.process.connections[0].local_only = true;
  EXPECT_TRUE(network_findings({alone.user()}, loads, 1).empty());
  const ProcessOnNetwork process({});
  // A node without RDMA, an idle network, and one whose traffic others cause by RDMA.
  EXPECT_TRUE(network_findings({process.user()}, {loads[1]}, 1).empty());
  EXPECT_TRUE(
      network_findings({process.user()}, {loads[0], {"eth0", 1, false, true, 1000, 0}}, 1).empty());
  EXPECT_TRUE(
      network_findings({process.user()}, {rdma_load("mlx5_0", 900000000), loads[1]}, 1).empty());
}

TEST(InspectNetwork, QueuePairsTellMoreThanDevicesThatAreOpen) {
  const std::vector<PortLoad> loads = {rdma_load("mlx5_0", 0),
                                       {"eth0", 1, false, true, 50000000, 0}};
  ProcessOnNetwork process({"mlx5_0"}); // NCCL opens all, and may use none
  process.rdma = RdmaUse();
  process.rdma->queue_pairs = {{"mlx5_0", 1, "RC", "RESET", 7, {}}};
  Findings findings = network_findings({process.user()}, loads, 1);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "tcp-fallback");
  EXPECT_NE(findings[0].message.find("no connected queue pair on the RDMA devices that it has open "
                                     "(mlx5_0)"),
            std::string::npos);
  process.rdma->queue_pairs[0].state = "RTS";
  EXPECT_TRUE(network_findings({process.user()}, loads, 1).empty());
  process.rdma->queue_pairs.clear();
  process.rdma->memory_regions = 1; // queue pairs of DEVX are in no account
  EXPECT_TRUE(network_findings({process.user()}, loads, 1).empty());
}

TEST(InspectNetwork, BytesOfItsOwnConnectionsDecide) {
  const std::vector<PortLoad> loads = {rdma_load("mlx5_0", 0),
                                       {"eth0", 1, false, true, 50000000, 0}};
  ProcessOnNetwork process({});
  TcpConnection& connection = process.process.connections[0];
  connection.window_acknowledged_bytes = 1000; // the interface's traffic belongs to other processes
  connection.window_received_bytes = 1000;
  EXPECT_TRUE(network_findings({process.user()}, loads, 1).empty());
  connection.window_received_bytes = 30000000;
  const Findings findings = network_findings({process.user()}, loads, 1);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_NE(findings[0].message.find("the connections carried 30.0 MB/s"), std::string::npos);
  connection.remote = "10.0.0.2:443"; // reads data from a server of the site
  EXPECT_TRUE(network_findings({process.user()}, loads, 1).empty());
}

TEST(InspectNetwork, AllHaveQueuePairsOnOneDevice) {
  const std::vector<PortLoad> loads = {rdma_load("mlx5_0", 0), rdma_load("mlx5_1", 0)};
  ProcessOnNetwork first({"mlx5_0", "mlx5_1"}), second({"mlx5_0", "mlx5_1"});
  for (ProcessOnNetwork* process : {&first, &second}) {
    process->rdma = RdmaUse();
    process->rdma->queue_pairs = {{"mlx5_1", 1, "RC", "RTS", 7, 8}};
  }
  const Findings findings = network_findings({first.user(), second.user()}, loads, 0);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].subject, "mlx5_1");
  EXPECT_NE(findings[0].message.find("queue pairs only on mlx5_1"), std::string::npos);
  second.rdma->queue_pairs[0].device = "mlx5_0";
  EXPECT_TRUE(network_findings({first.user(), second.user()}, loads, 0).empty());
}

TEST(InspectNetwork, OneNicOfMany) {
  const std::vector<PortLoad> uneven = {rdma_load("mlx5_0", 990000000),
                                        rdma_load("mlx5_1", 10000000)};
  const Findings findings = network_findings({}, uneven, 1);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "nic-one-of-many");
  EXPECT_EQ(findings[0].subject, "mlx5_0:1");
  EXPECT_NE(findings[0].message.find("99%"), std::string::npos);
  EXPECT_TRUE(network_findings({}, uneven, 0).empty());
  EXPECT_TRUE(
      network_findings({}, {rdma_load("mlx5_0", 500000000), rdma_load("mlx5_1", 500000000)}, 1)
          .empty());
  EXPECT_TRUE(network_findings({}, {uneven[0]}, 1).empty());
}

TEST(InspectNetwork, ReceivedByOneNic) {
  std::vector<PortLoad> loads;
  for (const char* device : {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"})
    loads.push_back({device, 1, true, true, 100000000, 0});
  loads[2].received_bytes = 400000000;
  const Findings findings = network_findings({}, loads, 1);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "receive-side-narrow");
  EXPECT_EQ(findings[0].subject, "mlx5_2:1");
  EXPECT_TRUE(network_findings({}, loads, 0).empty());
  loads[0].received_bytes = 300000000; // by two
  EXPECT_TRUE(network_findings({}, loads, 1).empty());
}

TEST(InspectNetwork, AllHaveTheSameDeviceOpen) {
  const std::vector<PortLoad> loads = {rdma_load("mlx5_0", 0), rdma_load("mlx5_1", 0)};
  const ProcessOnNetwork first({"mlx5_0"}), second({"mlx5_0"}), other({"mlx5_1"});
  EXPECT_EQ(network_findings({first.user(), second.user()}, loads, 0).size(), 1U);
  EXPECT_TRUE(network_findings({first.user(), other.user()}, loads, 0).empty());
  EXPECT_TRUE(network_findings({first.user()}, loads, 0).empty());
}

TEST(InspectRights, OfAProcess) {
  Process process;
  process.status = {{"Seccomp", "2"}, {"NoNewPrivs", "1"}, {"CapEff", "00000000a80425fb"}};
  process.limits = "Limit   Soft Limit  Hard Limit  Units\n"
                   "Max locked memory         65536                65536                bytes\n";
  process.namespaces = {{"net", "net:[2]"}, {"pid", "pid:[1]"}};
  process.devices = {{3, "/dev/infiniband/uverbs0"},
                     {4, "/dev/nvidia-caps-imex-channels/channel0"},
                     {5, "/dev/infiniband/uverbs0"}};
  const Rights rights = rights_of(process, {{"net", "net:[1]"}, {"pid", "pid:[1]"}});
  EXPECT_EQ(rights.seccomp, "filter");
  EXPECT_EQ(rights.no_new_privileges, true);
  EXPECT_EQ(rights.effective_capabilities, "00000000a80425fb");
  EXPECT_EQ(rights.other_namespaces, std::vector<std::string>{"net"});
  EXPECT_EQ(rights.locked_memory, "65536");
  EXPECT_EQ(rights.devices, std::vector<std::string>{"/dev/infiniband/uverbs0"});
  EXPECT_EQ(rights.imex_channels, std::vector<std::string>{"channel0"});
  const Rights unknown = rights_of(Process{}, {});
  EXPECT_EQ(unknown.seccomp, "");
  EXPECT_EQ(unknown.no_new_privileges, std::nullopt);
}

} // namespace
} // namespace shmemctl::inspect
