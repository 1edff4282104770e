// Interfaces without a device: pods' veth, bonds, VLANs.
#include "src/model/topo/readers/sysfs_nics.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/text.h"
#include "src/instruments/bench/bandwidth_limit.h"
#include "src/instruments/hotspots/sampler.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {
namespace {

/// An interface's files. @param device whether it has hardware
void interface(const TemporaryFolder& folder, const std::string& name, const std::string& speed,
               bool device, const std::string& kind = "", const std::string& lower = "",
               const std::string& state = "up", const std::string& type = "1") {
  const std::string at = "sys/class/net/" + name;
  folder.write(at + "/statistics/tx_bytes", "1000\n");
  folder.write(at + "/statistics/rx_bytes", "2000\n");
  folder.write(at + "/operstate", state + "\n");
  folder.write(at + "/type", type + "\n");
  folder.write(at + "/speed", speed + "\n");
  folder.write(at + "/uevent",
               (kind.empty() ? "" : "DEVTYPE=" + kind + "\n") + "INTERFACE=" + name);
  if (device)
    folder.write(at + "/device/vendor", "0x15b3\n");
  if (!lower.empty())
    folder.write(at + "/lower_" + lower + "/ifindex", "2\n");
}

struct Pod {
  Pod() {
    interface(folder, "lo", "", false, "", "", "unknown", "772");
    interface(folder, "eth0", "10000", false); // a veth, whose rate is invented
    interface(folder, "p0", "25000", true);
    interface(folder, "bond0", "25000", false, "bond", "p0");
    interface(folder, "bond0.7", "25000", false, "vlan", "bond0");
    interface(folder, "vlan_on_veth", "10000", false, "vlan", "eth0");
    interface(folder, "dummy0", "", false, "", "", "down");
  }
  Sysroot sysroot() const { return Sysroot(folder.path()); }
  TemporaryFolder folder;
};

TEST(VirtualInterfaces, ThoseThatAreUpAreCounted) {
  const Pod pod;
  Node node;
  Nic known_nic;
  known_nic.name = "p0";
  known_nic.rdma = known(false, "test");
  NicPort port;
  port.netdev = known(std::string("p0"), "test");
  known_nic.ports = {port};
  node.nics = {known_nic};
  const std::vector<MeasuredPort> ports =
      measured_ports(pod.sysroot(), with_virtual_interfaces(node, pod.sysroot()));
  std::string names;
  for (const MeasuredPort& one : ports)
    names += one.device + (one.link_Gbps ? "=" + std::to_string(int(*one.link_Gbps)) : "") + " ";
  EXPECT_EQ(names, "p0 bond0=25 bond0.7=25 eth0 vlan_on_veth ");
  for (const MeasuredPort& one : ports) {
    EXPECT_FALSE(one.fabric) << one.device;
    EXPECT_GE(one.counters.size(), 2u) << one.device;
  }
}

TEST(VirtualInterfaces, LinkLimitsKnowBondsAndVlans) {
  const Pod pod;
  const Sysroot sysroot = pod.sysroot();
  const auto rate = [&](const char* name) {
    return bench::wire_rate_GBps(Node{}, {name, 1}, &sysroot);
  };
  EXPECT_NEAR(rate("bond0").value_or(0), 3.125, 1e-9);
  EXPECT_NEAR(rate("bond0.7").value_or(0), 3.125, 1e-9);
  for (const char* none : {"eth0", "lo", "vlan_on_veth", "p0", "absent", "../x", ""})
    EXPECT_FALSE(rate(none)) << none;
  EXPECT_FALSE(bench::wire_rate_GBps(Node{}, {"bond0", 1}));
}

TEST(VirtualInterfaces, LinksThatRunInACircleEnd) {
  TemporaryFolder folder;
  interface(folder, "a", "100", false, "vlan", "b");
  interface(folder, "b", "100", false, "vlan", "a");
  EXPECT_FALSE(virtual_interface_Gbps(Sysroot(folder.path()), "a"));
}

TEST(VirtualInterfaces, TheTextOfAJobDoesNotSayThisMachine) {
  EXPECT_EQ(hotspots_text({{"mode", "job"}, {"ports", nlohmann::json::array()}}, {}),
            "No machine of this job has a NIC with counters.\n");
  EXPECT_EQ(hotspots_text({{"mode", "once"}, {"ports", nlohmann::json::array()}}, {}),
            "No NIC of this machine has counters.\n");
}

} // namespace
} // namespace shmemctl
