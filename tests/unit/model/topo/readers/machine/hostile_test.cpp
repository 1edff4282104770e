// Trees that are damaged, by accident or on purpose.
#include <gtest/gtest.h>
#include <random>
#include <sys/stat.h>

#include "src/model/topo/distance.h"
#include "src/model/topo/readers/reader.h"
#include "tests/support/fake_machine.h"

namespace shmemctl {
namespace {

using fake::FakeMachine;

/// Indices inside the model are valid, parents come first, and distances can be computed.
void expect_sound(const Node& node) {
  for (std::size_t i = 0; i < node.pci.size(); ++i) {
    EXPECT_LT(node.pci[i].parent, static_cast<int>(i));
    EXPECT_LT(node.pci[i].host_bridge, static_cast<int>(node.host_bridges.size()));
  }
  for (const Gpu& gpu : node.gpus)
    EXPECT_LT(gpu.pci, static_cast<int>(node.pci.size()));
  for (const Nic& nic : node.nics)
    EXPECT_LT(nic.pci, static_cast<int>(node.pci.size()));
  EXPECT_EQ(distance_matrix(node).size(), node.gpus.size() + node.nics.size());
}

TEST(HostileTree, LinksInACircle) {
  FakeMachine machine;
  machine.symlink("/sys/bus/pci/devices/0000:21:00.0", "0000:22:00.0");
  machine.symlink("/sys/bus/pci/devices/0000:22:00.0", "0000:21:00.0");
  machine.symlink("/sys/class/infiniband/mlx5_0", "mlx5_0");
  machine.symlink("/sys/class/net/eth0", "../net/eth0");
  machine.symlink("/sys/devices/system/node/node0", "node0");
  const Node node = read_machine(machine.sysroot());
  expect_sound(node);
  EXPECT_TRUE(node.gpus.empty());
  ASSERT_EQ(node.nics.size(), 1U); // the name exists, with nothing after it
  EXPECT_TRUE(node.nics[0].ports.empty());
  EXPECT_TRUE(node.nics[0].virtual_device);
}

TEST(HostileTree, DeviceThatLinksToItsOwnClassFolder) {
  FakeMachine machine;
  machine.add_hca("0000:21:00.0", {}, 0);
  machine.add_rdma({.name = "mlx5_0", .pci = "0000:21:00.0"});
  const std::string device = machine.path_of("0000:21:00.0") + "/infiniband/mlx5_0";
  machine.remove(device + "/device");
  machine.symlink(device + "/device", ".");
  const Node node = read_machine(machine.sysroot());
  expect_sound(node);
  ASSERT_EQ(node.nics.size(), 1U);
  EXPECT_EQ(to_string(node.pci.at(static_cast<std::size_t>(node.nics[0].pci)).address),
            "0000:21:00.0");
}

TEST(HostileTree, LinkOutOfTheRootLeadsNowhere) {
  FakeMachine machine;
  machine.symlink("/sys/class/infiniband", "/../../../../../../sys/class/net");
  machine.symlink("/proc/sys/kernel/hostname", "../../../../../../../../etc/hostname");
  const Node node = read_machine(machine.sysroot());
  EXPECT_EQ(node.hostname, "");
  EXPECT_TRUE(node.nics.empty());
}

TEST(HostileTree, FifoDoesNotHang) {
  FakeMachine machine;
  machine.add_hgx_node();
  for (const std::string path :
       {"/sys/devices/system/cpu/online", "/sys/devices/system/node/node0/cpulist",
        "/sys/devices/system/cpu/cpu0/topology/physical_package_id", "/proc/cpuinfo",
        "/sys/class/infiniband/mlx5_0/fw_ver", "/sys/class/infiniband/mlx5_0/ports/1/state",
        "/sys/bus/pci/devices/0000:14:00.0/numa_node", "/proc/sys/kernel/hostname"}) {
    const std::string real = machine.host_path(*machine.sysroot().realpath(path));
    std::filesystem::remove(real);
    ASSERT_EQ(::mkfifo(real.c_str(), 0600), 0) << path;
  }
  const Node node = read_machine(machine.sysroot());
  expect_sound(node);
  EXPECT_EQ(node.gpus.size(), 8U);
  EXPECT_FALSE(node.nics.at(0).firmware);
  EXPECT_EQ(node.nics[0].firmware.origin, "/sys/class/infiniband/mlx5_0/fw_ver cannot be read");
  EXPECT_FALSE(node.nics[0].ports.at(0).state);
  EXPECT_FALSE(node.nics[0].numa);
}

TEST(HostileTree, FolderWhereAFileShouldBe) {
  FakeMachine machine;
  machine.add_hgx_node();
  const std::string device = machine.path_of(FakeMachine::hgx_nic(0));
  for (const char* name : {"/class", "/numa_node", "/infiniband/mlx5_0/fw_ver"}) {
    machine.remove(device + name);
    machine.directory(device + name);
  }
  const Node node = read_machine(machine.sysroot());
  expect_sound(node);
  EXPECT_EQ(node.nics.size(), 8U);
}

TEST(HostileTree, BinaryAndHugeAttributesAreUnknown) {
  FakeMachine machine;
  machine.add_hgx_node();
  const std::string first = machine.path_of(FakeMachine::hgx_nic(0)) + "/infiniband/mlx5_0";
  machine.write(first + "/fw_ver", std::string("28\0\x01\xff", 5));
  machine.write(first + "/node_guid", std::string(std::size_t{64} << 20, 'x'));
  machine.write(first + "/ports/1/state", std::string(5000, '4'));
  machine.write(first + "/ports/1/rate", "\xff\xfe");
  machine.write("/proc/sys/kernel/hostname", "a\nb\n");
  machine.write("/proc/driver/nvidia/gpus/" + FakeMachine::hgx_gpu(0) + "/information",
                "Model: \x1b[31mred\n");
  const Node node = read_machine(machine.sysroot());
  expect_sound(node);
  EXPECT_EQ(node.hostname, "");
  const Nic& nic = node.nics.at(0);
  EXPECT_FALSE(nic.firmware);
  EXPECT_NE(nic.firmware.origin.find("bytes that are not text"), std::string::npos);
  EXPECT_FALSE(nic.node_guid);
  EXPECT_NE(nic.node_guid.origin.find("too long"), std::string::npos);
  EXPECT_FALSE(nic.ports.at(0).state);
  EXPECT_FALSE(nic.ports[0].rate_Gbps);
  EXPECT_FALSE(node.gpus.at(0).name);
}

TEST(HostileTree, OddNamesAreNoDevices) {
  FakeMachine machine;
  for (const char* name :
       {"0000:21:00.0 ", "0000:21:00", "0000:21:00.9", "0000:21:20.0", "pci", "0000:21:00.0:0"})
    machine.write(std::string("/sys/bus/pci/devices/") + name + "/class", "0x030200\n");
  machine.directory("/sys/class/infiniband/mlx5_0/ports/256");
  machine.directory("/sys/class/infiniband/mlx5_0/ports/-1");
  machine.directory("/sys/class/infiniband/mlx5_0/ports/x");
  machine.write("/sys/class/infiniband/mlx5_0/ports/1/gids/x",
                "fe80:0000:0000:0000:0011:2233:4455:6677");
  machine.write("/sys/class/infiniband/mlx5_0/ports/1/gids/99999999999",
                "fe80:0000:0000:0000:0011:2233:4455:6677");
  machine.directory("/sys/devices/system/node/node99999999999999999999");
  machine.directory("/sys/devices/system/node/node007");
  machine.directory("/sys/devices/system/cpu/cpu-1");
  const Node node = read_machine(machine.sysroot());
  expect_sound(node);
  EXPECT_TRUE(node.gpus.empty());
  EXPECT_TRUE(node.numa_nodes.empty());
  ASSERT_EQ(node.nics.size(), 1U);
  ASSERT_EQ(node.nics[0].ports.size(), 1U);
  EXPECT_TRUE(node.nics[0].ports[0].gids.empty());
}

TEST(HostileTree, NamesThatAreNotTextNeverReachTheModel) {
  FakeMachine machine;
  const std::string bad = "a\xff\x1b[2J";
  machine.directory("/sys/class/infiniband/" + bad + "/ports/1");
  machine.add_hca("0000:21:00.0", {}, 0);
  machine.add_hca("0000:22:00.0", {}, 0);
  machine.add_netdev({.name = bad, .pci = "0000:21:00.0"});
  const std::string function = machine.path_of("0000:22:00.0");
  machine.remove(function + "/driver");
  machine.directory("/sys/bus/pci/drivers/" + bad);
  machine.link(function + "/driver", "/sys/bus/pci/drivers/" + bad);
  machine.add_netdev({.name = "eth0", .pci = "0000:22:00.0"});
  const std::string hidden = "/sys/devices/" + bad + "/pci0000:30/0000:31:00.0";
  machine.write(hidden + "/class", "0x020000\n");
  machine.link("/sys/bus/pci/devices/0000:31:00.0", hidden);
  const Node node = read_machine(machine.sysroot());
  expect_sound(node);
  ASSERT_EQ(node.nics.size(), 1U);
  EXPECT_EQ(node.nics[0].name, "eth0");
  EXPECT_FALSE(node.nics[0].driver);
  for (const PciDevice& device : node.pci)
    EXPECT_EQ(device.sysfs_path.find(bad), std::string::npos);
}

TEST(HostileTree, OneFunctionAboveItself) {
  FakeMachine machine;
  const std::string loop = "/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/0000:20:01.0";
  machine.write(loop + "/class", "0x030200\n");
  machine.write(loop + "/vendor", "0x10de\n");
  machine.link("/sys/bus/pci/devices/0000:20:01.0", loop);
  expect_sound(read_machine(machine.sysroot()));
}

/// Every attribute file of a healthy tree in turn holds random bytes, or is gone.
TEST(HostileTree, DamagedAnywhereStaysSound) {
  FakeMachine machine;
  machine.add_hgx_node();
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(machine.root()))
    if (entry.is_regular_file() && !entry.is_symlink())
      files.push_back(entry.path().string().substr(machine.root().size()));
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    for (int damage = 0; damage < 20; ++damage) {
      const std::string& file = files[random() % files.size()];
      std::string bytes(random() % 40, '\0');
      for (char& byte : bytes)
        byte = random() % 2 == 0 ? "0123456789:-,x. \n"[random() % 17]
                                 : static_cast<char>(random() % 256);
      if (random() % 4 == 0)
        machine.remove(file);
      else
        machine.write(file, bytes);
    }
    expect_sound(read_machine(machine.sysroot()));
  }
}

} // namespace
} // namespace shmemctl
