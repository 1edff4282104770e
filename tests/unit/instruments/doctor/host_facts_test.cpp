// The facts of a whole copied machine.
#include "src/instruments/doctor/host_facts.h"

#include <gtest/gtest.h>

#include "src/instruments/doctor/settings.h"
#include "src/model/topo/readers/reader.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

using FactMap = std::map<std::string, std::string>;

FactMap facts_in(const fake::FakeMachine& files) {
  const Sysroot sysroot = files.sysroot();
  return read_host_facts(read_machine(sysroot), sysroot).facts;
}

void add_settings(fake::FakeMachine& files) {
  files.write("/proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
  files.write("/proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release\n");
  files.write("/sys/module/mlx5_core/version", "24.10-1.1.4\n");
  files.directory("/sys/module/nvidia_peermem");
  files.write("/etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  files.write("/proc/self/limits", "Max open files            1048576  1048576  files\n"
                                   "Max locked memory         65536  65536  bytes\n");
  files.write("/proc/meminfo", "MemTotal:       2113511840 kB\nMemFree: 1234 kB\n");
  files.write("/proc/mounts", "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n");
  files.write("/proc/sys/kernel/numa_balancing", "0\n");
  files.write("/proc/sys/kernel/yama/ptrace_scope", "1\n");
  files.write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  files.write("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n");
  files.write("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
  for (const char* policy : {"policy0", "policy1"})
    files.write(std::string("/sys/devices/system/cpu/cpufreq/") + policy + "/scaling_governor",
                "performance\n");
  files.write("/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0", "");
  files.symlink("/usr/lib/x86_64-linux-gnu/libibverbs.so.1", "libibverbs.so.1.14.44.0");
}

} // namespace

TEST(HostFacts, OfAWholeMachine) {
  fake::FakeMachine files;
  files.add_hgx_node();
  add_settings(files);
  const std::string config = files.path_of(fake::FakeMachine::hgx_nic(3)) + "/config";
  files.write(config, config_bytes(256, 0x5810, 0));
  const FactMap facts = facts_in(files);
  const FactMap expected = {
      {"kernel", "6.8.0-45-generic"},
      {"os", "Debian GNU/Linux 12 (bookworm)"},
      {"driver.nvidia", "580.65.06"},
      {"driver.nvidia_modules", "open"},
      {"driver.mlx5_core", "24.10-1.1.4"},
      {"module.nvidia_peermem", "loaded"},
      {"module.gdrdrv", "not loaded"},
      {"limit.memlock", "64K"},
      {"limit.nofile", "1048576"},
      {"memory.total", "2T"},
      {"memory.dev_shm", "1T"},
      {"memory.numa_balancing", "0"},
      {"memory.transparent_hugepages", "madvise"},
      {"memory.hugepages-2048kB", "0"},
      {"clocksource", "tsc"},
      {"ptrace_scope", "1"},
      {"cpu.governor", "performance"},
      {"cpu.model", "Fake CPU 9000"},
      {"cpu.packages", "2"},
      {"cpu.numa_nodes", "2"},
      {"cpu.online", "0-3"},
      {"library.libibverbs", "1.14.44.0"},
      {"gpu.count", "8"},
      {"gpu.5", "NVIDIA H100 80GB HBM3"},
      {"gpu.5.pcie_width", "16"},
      {"gpu.5.pcie_max_speed_GTps", "32"},
      {"gpu.5.numa", "1"},
      {"nic.count", "8"},
      {"nic.mlx5_3", "15b3:1021"},
      {"nic.mlx5_3.driver", "mlx5_core"},
      {"nic.mlx5_3.firmware", "28.39.1002"},
      {"nic.mlx5_3.pcie_width", "16"},
      {"nic.mlx5_3.pcie_speed_GTps", "32"},
      {"nic.mlx5_3.numa", "0"},
      {"nic.mlx5_3.max_read_request_bytes", "4096"},
      {"nic.mlx5_3.relaxed_ordering", "on"},
      {"nic.mlx5_3.port1", "ACTIVE"},
      {"nic.mlx5_3.port1.link_layer", "InfiniBand"},
      {"nic.mlx5_3.port1.rate_Gbps", "400"},
      {"netdev.ib3", "up"},
      {"netdev.ib3.mtu_bytes", "1500"},
      {"netdev.ib3.speed_Mbps", "400000"},
  };
  for (const auto& [name, value] : expected) {
    const auto found = facts.find(name);
    EXPECT_EQ(found == facts.end() ? "missing" : found->second, value) << name;
  }
}

TEST(HostFacts, WhatIsOfOneHostAloneIsNoFact) {
  fake::FakeMachine files;
  files.add_hgx_node();
  add_settings(files);
  const FactMap facts = facts_in(files);
  for (const auto& [name, value] : facts)
    for (const std::string& own :
         {std::string("hgx"), std::string("0011:2233"), std::string("02:00:00:00"),
          fake::FakeMachine::uuid_of(fake::FakeMachine::hgx_gpu(0)), fake::FakeMachine::hgx_gpu(0),
          fake::FakeMachine::hgx_nic(0)}) {
      EXPECT_EQ(name.find(own), std::string::npos) << name;
      EXPECT_EQ(value.find(own), std::string::npos) << name << ": " << value;
    }
  // The same memory modules, of which the kernel took a little more.
  files.write("/proc/meminfo", "MemTotal:       2113400000 kB\nMemFree: 99 kB\n");
  files.write("/proc/sys/kernel/hostname", "other\n");
  EXPECT_EQ(facts_in(files), facts);
}

TEST(HostFacts, ChangesAreSeen) {
  fake::FakeMachine files;
  files.add_hgx_node();
  add_settings(files);
  const FactMap before = facts_in(files);
  const std::string nic = files.path_of(fake::FakeMachine::hgx_nic(5));
  files.write(nic + "/infiniband/mlx5_5/fw_ver", "28.38.1002\n");
  files.write(nic + "/current_link_width", "8\n");
  files.write(nic + "/net/ib5/mtu", "4092\n");
  files.write(files.path_of(fake::FakeMachine::hgx_nic(6)) + "/infiniband/mlx5_6/ports/1/state",
              "1: DOWN\n");
  files.write("/proc/meminfo", "MemTotal:       1981417472 kB\n"); // one module of 32 is missing
  FactMap wanted = before;
  wanted["nic.mlx5_5.firmware"] = "28.38.1002";
  wanted["nic.mlx5_5.pcie_width"] = "8";
  wanted["netdev.ib5.mtu_bytes"] = "4092";
  wanted["nic.mlx5_6.port1"] = "DOWN";
  wanted.erase("nic.mlx5_6.port1.rate_Gbps"); // a port that is down has no rate worth comparing
  wanted["memory.total"] = "1920G";
  wanted["memory.dev_shm"] = "960G";
  EXPECT_EQ(facts_in(files), wanted);
}

TEST(HostFacts, KindsOfRoceGids) {
  const Node node = roce_node();
  const fake::FakeMachine files;
  const Sysroot sysroot = files.sysroot();
  const FactMap facts = read_host_facts(node, sysroot).facts;
  const auto found = facts.find("nic.mlx5_0.port1.gids");
  ASSERT_NE(found, facts.end());
  EXPECT_NE(found->second.find("3 RoCE v2 IPv4"), std::string::npos) << found->second;
  for (const Gid& gid : node.nics.front().ports.front().gids)
    EXPECT_EQ(found->second.find(gid.value), std::string::npos) << found->second;
  EXPECT_EQ(doctor::gid_kinds(NicPort{}), "none");
}

TEST(HostFacts, OfAnEmptyTree) {
  const fake::FakeMachine files;
  const FactMap facts = facts_in(files);
  EXPECT_EQ(facts.at("gpu.count"), "0");
  EXPECT_EQ(facts.at("nic.count"), "0");
  for (const char* unknown : {"kernel", "limit.memlock", "memory.total", "cpu.governor"})
    EXPECT_FALSE(facts.contains(unknown)) << unknown;
}

} // namespace shmemctl
