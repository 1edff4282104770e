// Which CPUs the PEs of `run` get, and when they are not bound.
#include "src/instruments/launch/core_shares.h"

#include <gtest/gtest.h>
#include <random>
#include <sched.h>
#include <set>

#include "src/instruments/launch/launch.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/instruments/launch/capture.h"

namespace shmemctl {
namespace {

/// NUMA nodes of `cores` cores with two threads each: CPU c and c + all cores.
CpuLayout layout_of(int nodes, int cores) {
  CpuLayout layout;
  const int all = nodes * cores;
  for (int core = 0; core < all; ++core) {
    layout.cores.push_back(CpuSet{core, core + all});
    layout.numa[core] = layout.numa[core + all] = core / cores;
  }
  return layout;
}

CpuSet cpus(int first, int last) {
  CpuSet set;
  set.add(first, last);
  return set;
}

std::string text_of(const CoreShares& shares) {
  std::string text;
  for (const CpuSet& one : shares.cpus)
    text += format_cpulist(one) + " ";
  return text;
}

TEST(CoreShares, CoresAreDividedEvenly) {
  EXPECT_EQ(text_of(share_cores(layout_of(1, 4), cpus(0, 7), {-1, -1})), "0-1,4-5 2-3,6-7 ");
  EXPECT_EQ(text_of(share_cores(layout_of(1, 2), cpus(0, 3), {-1, -1})), "0,2 1,3 ");
  EXPECT_EQ(text_of(share_cores(layout_of(2, 2), cpus(0, 7), {-1, -1, -1})), "0,4 1,5 2-3,6-7 ");
}

TEST(CoreShares, APeIsBoundNearItsGpu) {
  const CoreShares shares = share_cores(layout_of(2, 4), cpus(0, 15), {1, 1, 0, 0});
  EXPECT_EQ(text_of(shares), "4-5,12-13 6-7,14-15 0-1,8-9 2-3,10-11 ");
  EXPECT_EQ(shares.criteria, std::vector<std::string>(4, "cores near its GPU"));
  // Five GPUs on a node with four cores: one PE must use the other node.
  EXPECT_EQ(text_of(share_cores(layout_of(2, 4), cpus(0, 15), {0, 0, 0, 0, 0})),
            "0,8 1,9 2,10 3,11 4-7,12-15 ");
}

TEST(CoreShares, TheCriterionIsThatOfThePe) {
  const CpuLayout layout = layout_of(2, 1);
  const CoreShares full = share_cores(layout, cpus(0, 3), {0, 0});
  EXPECT_EQ(full.criteria,
            (std::vector<std::string>{"cores near its GPU", "no core near its GPU was free"}));
  EXPECT_EQ(to_text(full, layout),
            "PE 0 is bound to CPUs 0,2 of NUMA node 0 (cores near its GPU; run --pin none leaves "
            "it free)\nPE 1 is bound to CPUs 1,3 of NUMA node 1 (no core near its GPU was free; "
            "run --pin none leaves it free)\n");
  EXPECT_EQ(share_cores(layout, cpus(0, 3), {-1, 1}).criteria,
            (std::vector<std::string>{"cores", "cores near its GPU"}));
}

TEST(CoreShares, MorePesThanCoresAreNotBound) {
  const CoreShares shares = share_cores(layout_of(1, 2), cpus(0, 3), {-1, -1, -1});
  EXPECT_TRUE(shares.cpus.empty());
  EXPECT_NE(shares.reason.find("3 PEs and 2 cores"), std::string::npos);
}

TEST(CoreShares, OnlyAllowedCpusAreUsed) {
  EXPECT_EQ(text_of(share_cores(layout_of(1, 4), CpuSet{1, 2, 3, 5}, {-1, -1, -1})), "1,5 2 3 ");
}

TEST(CoreShares, AreDisjointAndNeverEmptyOnRandomMachines) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    const int nodes = 1 + static_cast<int>(random() % 4),
              cores = 1 + static_cast<int>(random() % 9);
    const CpuLayout layout = layout_of(nodes, cores);
    CpuSet allowed;
    for (int cpu = 0; cpu < 2 * nodes * cores; ++cpu)
      if (random() % 4 != 0)
        allowed.add(cpu);
    std::vector<int> pin_requests;
    for (unsigned pe = 0; pe < 1 + random() % 12; ++pe)
      pin_requests.push_back(static_cast<int>(random() % 6) - 1);
    const CoreShares shares = share_cores(layout, allowed, pin_requests);
    std::size_t usable = 0;
    for (const CpuSet& core : layout.cores)
      usable += intersection(core, allowed).empty() ? 0 : 1;
    ASSERT_EQ(shares.cpus.empty(), pin_requests.size() > usable);
    std::set<std::size_t> taken;
    for (const CpuSet& share : shares.cpus) {
      ASSERT_FALSE(share.empty());
      ASSERT_EQ(intersection(share, allowed), share);
      for (std::size_t core = 0; core < layout.cores.size(); ++core)
        if (!intersection(layout.cores[core], share).empty()) {
          ASSERT_TRUE(taken.insert(core).second) << "two PEs on one core";
        }
    }
  }
}

/// A machine of files: CPUs 0 to 7, two NUMA nodes, GPUs on the second one first.
class Machine {
public:
  Machine() {
    for (int cpu = 0; cpu < 8; ++cpu)
      folder.write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/core_cpus_list",
                   std::to_string(cpu) + "\n");
    folder.write("sys/devices/system/cpu/online", "0-7\n");
    folder.write("sys/devices/system/node/node0/cpulist", "0-3\n");
    folder.write("sys/devices/system/node/node1/cpulist", "4-7\n");
    allow("0-7");
  }
  void allow(const std::string& list) const {
    folder.write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t" + list + "\nMems:\t0\n");
  }
  void gpu(const std::string& address, int numa, const std::string& vendor = "0x10de") const {
    const std::string device = "sys/bus/pci/devices/" + address;
    folder.write(device + "/class", "0x030200\n");
    folder.write(device + "/vendor", vendor + "\n");
    folder.write(device + "/numa_node", std::to_string(numa) + "\n");
  }
  CoreShares shares(int n_pes, const Environment& environment = {}) const {
    return choose_core_shares(Sysroot(folder.path()), environment, n_pes);
  }
  TemporaryFolder folder;
};

TEST(CoreShares, OfAMachineWithGpus) {
  Machine machine;
  machine.gpu("0000:18:00.0", 1);
  machine.gpu("0000:3a:00.0", 0);
  machine.gpu("0000:01:00.0", 0, "0x1a03"); // a management controller's display
  EXPECT_EQ(gpu_numa_nodes(Sysroot(machine.folder.path())), (std::vector<int>{1, 0}));
  EXPECT_EQ(text_of(machine.shares(2)), "4-7 0-3 ");
  EXPECT_EQ(text_of(machine.shares(4)), "4-5 0-1 6-7 2-3 ");
  EXPECT_EQ(text_of(machine.shares(2, {{"CUDA_VISIBLE_DEVICES", "1,0"}})), "0-3 4-7 ");
  EXPECT_EQ(text_of(machine.shares(2, {{"SHMEMCTL_GPUS", "0,0"}})), "4-5 6-7 ");
  EXPECT_EQ(text_of(machine.shares(2, {{"CUDA_VISIBLE_DEVICES", "GPU-1b2c"}})), "0-3 4-7 ");
}

TEST(CoreShares, AnExistingAffinityIsKept) {
  Machine machine;
  EXPECT_EQ(text_of(machine.shares(2)), "0-3 4-7 ");
  machine.allow("0-1"); // taskset, or a launcher
  EXPECT_TRUE(machine.shares(2).cpus.empty());
  EXPECT_NE(machine.shares(2).reason.find("0-1"), std::string::npos);
  // A container's CPU set was not chosen for this process.
  machine.folder.write("proc/self/cgroup", "0::/pod\n");
  machine.folder.write("sys/fs/cgroup/pod/cpuset.cpus.effective", "0-1\n");
  EXPECT_EQ(text_of(machine.shares(2)), "0 1 ");
  EXPECT_TRUE(machine.shares(1).cpus.empty());
  EXPECT_TRUE(machine.shares(2, {{"SHMEMCTL_PROXY_CPUS", "0"}}).cpus.empty());
  EXPECT_TRUE(Machine().shares(9).cpus.empty());
}

TEST(CoreShares, ApplyToThePes) {
  const test::Capture capture;
  LaunchRequest request;
  request.command = {"sh", "-c", "grep Cpus_allowed_list /proc/self/status"};
  request.environment = {{"PATH", "/usr/bin:/bin"}};
  const auto allowed = choose_core_shares(Sysroot(), {}, 1); // reads, and does not bind anything
  EXPECT_TRUE(allowed.cpus.empty());
  request.n_pes = 1;
  cpu_set_t own;
  ASSERT_EQ(::sched_getaffinity(0, sizeof own, &own), 0);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(static_cast<std::size_t>(last), &own))
    --last;
  request.cpus = {CpuSet{last}};
  const LaunchResult result = launch(request, [] { return std::string("test-id-shares"); });
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(capture.out(), "Cpus_allowed_list:\t" + std::to_string(last) + "\n");
}

} // namespace
} // namespace shmemctl
