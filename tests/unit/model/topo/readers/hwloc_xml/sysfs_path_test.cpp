#include "src/model/topo/pcie.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace shmemctl {

namespace {

int add(Node& node, PciAddress address, PciKind kind, int parent, int host_bridge = 0) {
  PciDevice device;
  device.address = address;
  device.kind = kind;
  device.parent = parent;
  device.host_bridge = host_bridge;
  node.pci.push_back(device);
  return static_cast<int>(node.pci.size()) - 1;
}

/// NVSHMEM's measure: slashes of `gpu` that come before the first difference, and all of them.
std::pair<long, long> shared_slashes(const std::string& gpu, const std::string& nic) {
  const auto differ = std::mismatch(gpu.begin(), gpu.end(), nic.begin(), nic.end()).first;
  return {std::count(gpu.begin(), differ, '/'), std::count(gpu.begin(), gpu.end(), '/')};
}

} // namespace

TEST(SysfsPath, IsTheSourcesOwnWhereItHasOne) {
  Node node;
  const int entry = add(node, {0, 1, 0, 0}, PciKind::endpoint, -1, -1);
  EXPECT_EQ(synthesized_sysfs_path(node, entry), "");
  node.pci[0].sysfs_path = "/sys/devices/pci0000:00/0000:01:00.0";
  EXPECT_EQ(synthesized_sysfs_path(node, entry), "/sys/devices/pci0000:00/0000:01:00.0");
}

TEST(SysfsPath, FollowsBridges) {
  Node node;
  node.host_bridges.resize(1);
  node.host_bridges[0].domain = 0x10000;
  node.host_bridges[0].bus = 0x15;
  const int port = add(node, {0x10000, 0x15, 1, 0}, PciKind::bridge, -1);
  const int gpu = add(node, {0x10000, 0x16, 0, 0}, PciKind::endpoint, port);
  EXPECT_EQ(synthesized_sysfs_path(node, gpu),
            "/sys/devices/pci10000:15/10000:15:01.0/10000:16:00.0");
  node.pci[0].sysfs_path = "/sys/devices/odd/place";
  EXPECT_EQ(synthesized_sysfs_path(node, gpu), "/sys/devices/odd/place/10000:16:00.0");
}

TEST(SysfsPath, AWholeSwitchGivesTheClassesThatNvshmemCounts) {
  Node node;
  node.host_bridges.resize(1);
  const int upper = add(node, {0, 1, 0, 0}, PciKind::whole_switch, -1);
  const int inner = add(node, {0, 2, 0, 0}, PciKind::whole_switch, upper);
  const int gpu = add(node, {0, 3, 0, 0}, PciKind::endpoint, inner);
  const int sibling = add(node, {0, 4, 0, 0}, PciKind::endpoint, inner);
  const int cousin = add(node, {0, 5, 0, 0}, PciKind::endpoint, upper);
  const int other = add(node, {0, 6, 0, 0}, PciKind::whole_switch, -1);
  const int far = add(node, {0, 7, 0, 0}, PciKind::endpoint, other);
  auto path = [&node](int entry) { return synthesized_sysfs_path(node, entry); };
  EXPECT_EQ(path(cousin), "/sys/devices/pci0000:00/0000:01:00.0:rp/0000:01:00.0/"
                          "0000:01:00.0:dp.0000:05:00.0/0000:05:00.0");
  const auto [near_score, near_depth] = shared_slashes(path(gpu), path(sibling));
  EXPECT_EQ(near_score, near_depth - 1); // PIX
  const auto [score, depth] = shared_slashes(path(gpu), path(cousin));
  EXPECT_GT(score, 4); // PXB
  EXPECT_LT(score, depth - 1);
  EXPECT_EQ(shared_slashes(path(gpu), path(far)).first, 4); // PHB
}

TEST(SysfsPath, KeepsHostBridgesApart) {
  Node node;
  node.host_bridges.resize(2); // two CPUs of a source that does not know their buses
  const int left = add(node, {0, 1, 0, 0}, PciKind::endpoint, -1, 0);
  const int right = add(node, {0, 2, 0, 0}, PciKind::endpoint, -1, 1);
  EXPECT_EQ(
      shared_slashes(synthesized_sysfs_path(node, left), synthesized_sysfs_path(node, right)).first,
      3); // NODE or SYS
}

} // namespace shmemctl
