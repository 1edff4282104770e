// What pcie-acs says of the devices that are slower, and how its fix stays short.
#include <gtest/gtest.h>

#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/pcie.h"
#include "src/instruments/doctor/support.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

CheckResult redirecting_everywhere(Node node) {
  Machine machine;
  machine.node = std::move(node);
  for (PciDevice& device : machine.node.pci)
    if (device.kind == PciKind::bridge) {
      machine.files.write(doctor::config_path(device.address), config_bytes(4096, 0, 0x1d));
      device.vendor = known<std::uint16_t>(0x1000, "test");
      device.device = known<std::uint16_t>(0xc030, "test");
    }
  const Sysroot sysroot = machine.files.sysroot();
  return doctor::pcie_acs({sysroot, machine.node, machine.environment});
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// `count` GPUs below one switch, a NIC beside each.
Node wide_node(int count) {
  Node node = healthy_node();
  const int upstream = node.pci.at(static_cast<std::size_t>(node.gpus[0].pci)).parent - 1;
  for (int i = 0; i < count; ++i)
    for (const bool gpu : {true, false}) {
      PciDevice bridge = node.pci.at(static_cast<std::size_t>(upstream));
      bridge.address = {0, 0x12, static_cast<std::uint8_t>(2 + 2 * i + (gpu ? 0 : 1)), 0};
      bridge.parent = upstream;
      node.pci.push_back(bridge);
      PciDevice function = bridge;
      function.kind = PciKind::endpoint;
      function.address = {0, static_cast<std::uint8_t>(0x40 + 2 * i + (gpu ? 0 : 1)), 0, 0};
      function.parent = static_cast<int>(node.pci.size()) - 1;
      node.pci.push_back(function);
      const int added = static_cast<int>(node.pci.size()) - 1;
      if (gpu) {
        node.gpus.push_back(node.gpus[0]);
        node.gpus.back().index = static_cast<int>(node.gpus.size()) - 1;
        node.gpus.back().pci = added;
      } else {
        node.nics.push_back(node.nics[0]);
        node.nics.back().name = "mlx5_" + std::to_string(node.nics.size() - 1);
        node.nics.back().pci = added;
      }
    }
  return node;
}

} // namespace

TEST(PcieAcs, NamesWhoExchangesDataOverTheBridges) {
  const CheckResult both = redirecting_everywhere(healthy_node());
  EXPECT_EQ(both.status, CheckStatus::warning);
  EXPECT_TRUE(has(both.reason, "GPU0 and mlx5_0, GPU1 and mlx5_1")) << both.reason;
  EXPECT_TRUE(has(both.reason, "GPUDirect RDMA")) << both.reason;
  EXPECT_TRUE(has(both.reason, "at 4 bridges, the first of them 0000:12:00.0")) << both.reason;
  EXPECT_TRUE(has(both.fix, "for b in 0000:12:00.0 0000:12:01.0 0000:22:00.0 0000:22:01.0; do "))
      << both.fix;

  Node peers = healthy_node(); // two GPUs below one host bridge, no NIC
  peers.nics.clear();
  for (PciDevice& device : peers.pci)
    device.host_bridge = 0;
  const CheckResult of_gpus = redirecting_everywhere(peers);
  EXPECT_TRUE(has(of_gpus.reason, "between GPUs to the root complex")) << of_gpus.reason;
  EXPECT_TRUE(has(of_gpus.reason, "GPU0 and GPU1, GPU1 and GPU0")) << of_gpus.reason;
}

TEST(PcieAcs, TheFixStaysShortAndSaysWhatSurvivesAReboot) {
  const CheckResult many = redirecting_everywhere(wide_node(12));
  EXPECT_EQ(many.status, CheckStatus::warning);
  EXPECT_TRUE(has(many.reason, " and 6 more")) << many.reason; // of 14 pairs
  EXPECT_TRUE(has(many.fix, "$(lspci -Dd ::0604 | cut -d\" \" -f1)")) << many.fix;
  EXPECT_TRUE(has(many.fix, "\"pci=disable_acs_redir=pci:1000:c030\"")) << many.fix;
  EXPECT_TRUE(has(many.fix, "until the next boot")) << many.fix;
  EXPECT_LT(many.fix.size(), 320U);
  EXPECT_LT(many.reason.size(), 400U);
}

TEST(PcieAcs, OfACopyRootRecordsAgain) {
  const fake::FakeMachine files;
  EXPECT_EQ(doctor::as_root(files.sysroot(), "pcie-acs"),
            "record that node again as root: sudo shmemctl gather -o node.tar.zst");
  EXPECT_EQ(doctor::as_root(Sysroot("/"), "pcie-acs"), "sudo shmemctl doctor --only pcie-acs");
  EXPECT_EQ(doctor::fix_from_record("sudo shmemctl doctor --only pcie"),
            doctor::as_root(files.sysroot(), "pcie"));
  EXPECT_EQ(doctor::fix_from_record("modprobe mlx5_ib"), "modprobe mlx5_ib");
}

} // namespace shmemctl
