// A recorded POWER9 machine whose GPU memories are NUMA nodes. Its recorded console output names
// packages 0 and 8, CPU nodes 0 and 8, and GPU memory nodes 250 to 255.
#include <cstdlib>
#include <gtest/gtest.h>

#include "src/model/topo/distance.h"
#include "src/model/topo/readers/reader.h"
#include "test_paths.h"
#include "tests/support/fake_machine.h"

namespace shmemctl {
namespace {

class Power9 : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    const std::string archive = std::string(SHMEMCTL_SHARED) +
                                "/topologies/power9-gpu-numa-sysfs/nvidiagpunumanodes.tar.bz2";
    if (!std::filesystem::exists(archive)) {
      missing_ = "the recorded machines are not there: " + archive;
      return;
    }
    const fake::FakeMachine machine;
    const std::string command = "tar -xjf '" + archive + "' -C '" + machine.root() + "'";
    if (std::system(command.c_str()) != 0)
      missing_ = "tar or bzip2 is not installed";
    else
      node_ = read_machine(Sysroot(machine.root() + "/nvidiagpunumanodes"));
  }
  void SetUp() override {
    if (!missing_.empty())
      GTEST_SKIP() << missing_;
  }

  inline static std::string missing_;
  inline static Node node_;
};

TEST_F(Power9, Packages) {
  ASSERT_EQ(node_.packages.size(), 2U);
  EXPECT_EQ(node_.packages[0].os_index, 0);
  EXPECT_EQ(node_.packages[1].os_index, 8);
  EXPECT_EQ(*node_.packages[0].model, "POWER9, altivec supported");
}

TEST_F(Power9, GpuMemoryIsDistinguishedFromCpuNodes) {
  ASSERT_EQ(node_.numa_nodes.size(), 8U);
  const int expected[][2] = {{0, 0},   {8, 8},   {250, 8}, {251, 8},
                             {252, 8}, {253, 0}, {254, 0}, {255, 0}};
  for (std::size_t i = 0; i < 8; ++i) {
    const NumaNode& numa = node_.numa_nodes[i];
    EXPECT_EQ(numa.os_index, expected[i][0]);
    EXPECT_EQ(numa.kind, i < 2 ? NumaKind::cpu : NumaKind::gpu_memory) << numa.os_index;
    ASSERT_TRUE(numa.package) << numa.os_index << ": " << numa.package.origin;
    EXPECT_EQ(*numa.package, expected[i][1]) << numa.os_index;
    EXPECT_TRUE(numa.memory_bytes) << numa.memory_bytes.origin;
  }
  EXPECT_EQ(*node_.numa_nodes[0].cpus, "0-87");
}

TEST_F(Power9, PciFunctionsAreTooReducedToNameGpus) {
  // The copy has class 0300 and no vendor files: the devices cannot be identified.
  EXPECT_TRUE(node_.gpus.empty());
  EXPECT_TRUE(node_.nics.empty());
}

} // namespace
} // namespace shmemctl
