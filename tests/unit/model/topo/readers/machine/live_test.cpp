#include <gtest/gtest.h>

#include "src/model/topo/readers/machine.h"
#include "src/model/topo/readers/reader.h"

namespace shmemctl {
namespace {

TEST(LiveMachine, TellsPackagesNumaNodesAndHost) {
  const Node node = read_machine(Sysroot());
  EXPECT_EQ(node.format, "live");
  EXPECT_FALSE(node.hostname.empty());
  ASSERT_FALSE(node.packages.empty());
  ASSERT_FALSE(node.numa_nodes.empty());
  for (const NumaNode& numa : node.numa_nodes) {
    EXPECT_TRUE(numa.cpus.known()) << numa.cpus.origin;
    EXPECT_TRUE(numa.memory_bytes.known()) << numa.memory_bytes.origin;
  }
}

TEST(LiveMachine, HwlocAndSysfsAgreeOnPackagesAndNumaNodes) {
  Node by_hwloc, by_sysfs;
  read_cpus_hwloc(Sysroot(), by_hwloc);
  read_cpus_sysfs(Sysroot(), by_sysfs);
  ASSERT_EQ(by_hwloc.packages.size(), by_sysfs.packages.size());
  for (std::size_t i = 0; i < by_hwloc.packages.size(); ++i)
    EXPECT_EQ(by_hwloc.packages[i].os_index, by_sysfs.packages[i].os_index);
  if (by_sysfs.numa_nodes.empty())
    GTEST_SKIP() << "this kernel has no /sys/devices/system/node";
  ASSERT_EQ(by_hwloc.numa_nodes.size(), by_sysfs.numa_nodes.size());
  for (std::size_t i = 0; i < by_hwloc.numa_nodes.size(); ++i) {
    EXPECT_EQ(by_hwloc.numa_nodes[i].os_index, by_sysfs.numa_nodes[i].os_index);
    EXPECT_EQ(by_hwloc.numa_nodes[i].cpus.value, by_sysfs.numa_nodes[i].cpus.value);
    EXPECT_EQ(by_hwloc.numa_nodes[i].package.value, by_sysfs.numa_nodes[i].package.value);
  }
}

} // namespace
} // namespace shmemctl
