// Which machine a process is on: from files of synthetic machines, and from this one.
#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/runtime/bootstrap/select.h"
#include "src/runtime/identity.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {
namespace {

constexpr const char* machine_a = "0123456789abcdef0123456789abcdef\n";
constexpr const char* machine_b = "0123456789abcdef0123456789abcde0\n";
constexpr const char* boot_a = "6f1d3c5e-0000-4000-8000-00000000000a\n";
constexpr const char* boot_b = "6f1d3c5e-0000-4000-8000-00000000000b\n";

/// A file that is empty is not written.
HostIdentity identity_of(const std::string& machine, const std::string& boot,
                         const std::string& host = "host\n", const Environment& environment = {}) {
  TemporaryFolder folder;
  if (!machine.empty())
    folder.write("etc/machine-id", machine);
  if (!boot.empty())
    folder.write("proc/sys/kernel/random/boot_id", boot);
  folder.write("proc/sys/kernel/hostname", host);
  return read_identity(Sysroot(folder.path()), Options(environment), environment);
}

TEST(Identity, MachineAndBootTogetherNameTheMachine) {
  const HostIdentity a = identity_of(machine_a, boot_a);
  EXPECT_EQ(a.host_name, "host");
  EXPECT_EQ(a.what_is_missing, "");
  EXPECT_NE(a.machine_id, 0U);
  EXPECT_EQ(a.node_id, a.machine_id);
  EXPECT_EQ(a.machine_id, identity_of(machine_a, boot_a).machine_id);
  EXPECT_NE(a.machine_id, identity_of(machine_b, boot_a).machine_id);
  EXPECT_NE(a.machine_id, identity_of(machine_a, boot_b).machine_id);
}

// NVSHMEM hashes the host name: two containers with the same name count as one node, and two of one
// machine with different names as two.
TEST(Identity, TheHostNameDoesNotMatter) {
  EXPECT_EQ(identity_of(machine_a, boot_a, "one\n").machine_id,
            identity_of(machine_a, boot_a, "two\n").machine_id);
  EXPECT_NE(identity_of(machine_a, boot_a, "same\n").machine_id,
            identity_of(machine_a, boot_b, "same\n").machine_id);
}

TEST(Identity, WithoutAMachineIdBootAndNameDecide) {
  for (const char* unusable :
       {"", "\n", "uninitialized\n", "0123\n", "not hexadecimal at all!\n"}) {
    const HostIdentity one = identity_of(unusable, boot_a, "one\n");
    EXPECT_EQ(one.what_is_missing, "/etc/machine-id") << unusable;
    EXPECT_EQ(one.machine_id, identity_of("", boot_a, "one\n").machine_id) << unusable;
    EXPECT_NE(one.machine_id, identity_of("", boot_a, "two\n").machine_id) << unusable;
    EXPECT_NE(one.machine_id, identity_of("", boot_b, "one\n").machine_id) << unusable;
  }
}

TEST(Identity, SaysWhenNothingWasThere) {
  const HostIdentity nothing = identity_of("", "", "one\n");
  EXPECT_EQ(nothing.what_is_missing, "/etc/machine-id, /proc/sys/kernel/random/boot_id");
  EXPECT_NE(nothing.machine_id, identity_of("", "", "two\n").machine_id);
  EXPECT_EQ(identity_of(machine_a, "").what_is_missing, "/proc/sys/kernel/random/boot_id");
}

TEST(Identity, WritingOfTheIdsDoesNotMatter) {
  EXPECT_EQ(identity_of("0123456789ABCDEF0123456789ABCDEF", boot_a).machine_id,
            identity_of(machine_a, boot_a).machine_id);
}

TEST(Identity, NodeIdMakesOneNodeOfSeveralMachines) {
  const Environment rack = {{"SHMEMCTL_NODE_ID", "rack7"}};
  const HostIdentity a = identity_of(machine_a, boot_a, "a\n", rack);
  const HostIdentity b = identity_of(machine_b, boot_b, "b\n", rack);
  EXPECT_EQ(a.node_id, b.node_id);
  EXPECT_NE(a.machine_id, b.machine_id);
  EXPECT_NE(a.node_id, a.machine_id);
  EXPECT_NE(a.node_id, identity_of(machine_a, boot_a, "a\n", {{"SHMEMCTL_NODE_ID", "r8"}}).node_id);
}

TEST(Identity, VirtualNodesSplitAMachine) {
  const auto of = [](const char* machine, const std::string& index) {
    return identity_of(machine, boot_a, "a\n", {{local_variables::node, index}});
  };
  EXPECT_EQ(of(machine_a, "0").node_id, of(machine_a, "0").node_id);
  EXPECT_EQ(of(machine_a, "0").machine_id, of(machine_a, "1").machine_id);
  EXPECT_NE(of(machine_a, "0").node_id, of(machine_a, "1").node_id);
  EXPECT_NE(of(machine_a, "0").node_id, of(machine_b, "0").node_id);
  EXPECT_EQ(of(machine_a, "").node_id, of(machine_a, "").machine_id);
}

TEST(Identity, NodeIdWinsOverTheVirtualNode) {
  const auto of = [](const std::string& index) {
    return identity_of(machine_a, boot_a, "a\n",
                       {{"SHMEMCTL_NODE_ID", "x"}, {local_variables::node, index}})
        .node_id;
  };
  EXPECT_EQ(of("0"), of("1"));
}

TEST(Identity, RejectsAMalformedVirtualNode) {
  for (const char* bad : {"-1", "one", "1 2", "99999999999999999999"})
    try {
      identity_of(machine_a, boot_a, "a\n", {{local_variables::node, bad}});
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(error.message().find(bad), std::string::npos) << error.message();
    }
}

TEST(Identity, OfThisMachine) {
  const HostIdentity mine = read_identity(Sysroot(), Options({}), {});
  std::array<char, 257> name{};
  ASSERT_EQ(::gethostname(name.data(), name.size() - 1), 0);
  EXPECT_EQ(mine.host_name, name.data());
  struct stat status {};
  ASSERT_EQ(::stat("/proc/self/ns/net", &status), 0);
  EXPECT_EQ(mine.network_namespace, status.st_ino);
  ASSERT_EQ(::stat("/proc/self/ns/pid", &status), 0);
  EXPECT_EQ(mine.pid_namespace, status.st_ino);
  EXPECT_EQ(mine.machine_id, read_machine_identity(Sysroot()).machine_id);
}

TEST(Identity, ACopyOfAMachineHasNoNamespaces) {
  const HostIdentity copy = identity_of(machine_a, boot_a);
  EXPECT_EQ(copy.network_namespace, 0U);
  EXPECT_EQ(copy.pid_namespace, 0U);
}

TEST(Identity, WorldModes) {
  EXPECT_EQ(parse_world_mode("whole"), WorldMode::whole);
  EXPECT_EQ(parse_world_mode("per-local-rank"), WorldMode::per_local_rank);
  EXPECT_EQ(parse_world_mode("low-latency"), WorldMode::low_latency);
  for (const char* bad : {"", "Whole", "low_latency", "deepep"})
    try {
      parse_world_mode(bad);
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
    }
  try {
    parse_world_mode("low_latency");
  } catch (const Error& error) {
    EXPECT_EQ(error.fix(), "did you mean low-latency?");
  }
}

TEST(Identity, EveryChoiceOfInitModeIsAWorldMode) {
  for (const std::string& choice : option_spec("INIT_MODE").choices)
    EXPECT_NO_THROW(parse_world_mode(choice)) << choice;
}

} // namespace
// Where PEs are: nodes, local ranks and the distribution, for regular and odd jobs.

namespace {

std::vector<PeHost> hosts_on(const std::vector<int>& nodes) {
  std::vector<PeHost> hosts;
  for (const int node : nodes) {
    PeHost host;
    host.host_name = "host";
    host.node_id = 1000003ULL * static_cast<std::uint64_t>(node) + 17;
    host.machine_id = host.node_id;
    hosts.push_back(host);
  }
  return hosts;
}

Placement place_on(const std::vector<int>& nodes, int pe = 0) {
  return place(pe, hosts_on(nodes));
}

std::vector<int> block_nodes(int nodes, int pes_per_node) {
  std::vector<int> all;
  for (int pe = 0; pe < nodes * pes_per_node; ++pe)
    all.push_back(pe / pes_per_node);
  return all;
}
std::vector<int> round_robin_nodes(int nodes, int pes_per_node) {
  std::vector<int> all;
  for (int pe = 0; pe < nodes * pes_per_node; ++pe)
    all.push_back(pe % nodes);
  return all;
}

TEST(Placement, OneNode) {
  const Placement placement = place_on({0, 0, 0}, 1);
  EXPECT_EQ(placement.pe, 1);
  EXPECT_EQ(placement.n_pes, 3);
  EXPECT_EQ(placement.n_nodes(), 1);
  EXPECT_EQ(placement.my_node(), 0);
  EXPECT_EQ(placement.my_local_pe(), 1);
  EXPECT_EQ(placement.node_pes, (std::vector<std::vector<int>>{{0, 1, 2}}));
  EXPECT_EQ(placement.distribution, Distribution::block);
  EXPECT_TRUE(placement.equal_pes_per_node);
}

// NVSHMEM finds BLOCK only for one node and for as many nodes as PEs per node.
TEST(Placement, BlockIsFoundForEveryShape) {
  for (int nodes = 1; nodes <= 8; ++nodes)
    for (int per_node = 1; per_node <= 8; ++per_node) {
      const Placement placement = place_on(block_nodes(nodes, per_node));
      EXPECT_EQ(placement.distribution, Distribution::block) << nodes << " x " << per_node;
      EXPECT_EQ(placement.n_nodes(), nodes);
      EXPECT_TRUE(placement.equal_pes_per_node);
    }
}

TEST(Placement, RoundRobinIsFoundForEveryShape) {
  for (int nodes = 2; nodes <= 8; ++nodes)
    for (int per_node = 2; per_node <= 8; ++per_node) {
      const Placement placement = place_on(round_robin_nodes(nodes, per_node));
      EXPECT_EQ(placement.distribution, Distribution::round_robin) << nodes << " x " << per_node;
      EXPECT_TRUE(placement.equal_pes_per_node);
    }
}

// NVSHMEM reads past its array here and reports round robin.
TEST(Placement, OnePeOnEachNodeIsBlock) {
  for (int nodes = 1; nodes <= 17; ++nodes)
    EXPECT_EQ(place_on(block_nodes(nodes, 1)).distribution, Distribution::block) << nodes;
}

// NVSHMEM refuses such a job.
TEST(Placement, UnequalNodesAreLegalAndReported) {
  const Placement block = place_on({0, 0, 0, 1}, 3);
  EXPECT_FALSE(block.equal_pes_per_node);
  EXPECT_EQ(block.distribution, Distribution::block);
  EXPECT_EQ(block.my_node(), 1);
  EXPECT_EQ(block.my_local_pe(), 0);
  const Placement round_robin = place_on({0, 1, 2, 0, 1});
  EXPECT_FALSE(round_robin.equal_pes_per_node);
  EXPECT_EQ(round_robin.distribution, Distribution::round_robin);
}

TEST(Placement, IrregularJobs) {
  for (const std::vector<int>& nodes :
       {std::vector<int>{0, 1, 1, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 1, 2, 1, 0, 2}})
    EXPECT_EQ(place_on(nodes).distribution, Distribution::irregular);
}

TEST(Placement, NodesAreNumberedByFirstAppearance) {
  const Placement placement = place_on({7, 3, 7, 5, 3}, 4);
  EXPECT_EQ(placement.node, (std::vector<int>{0, 1, 0, 2, 1}));
  EXPECT_EQ(placement.local_pe, (std::vector<int>{0, 0, 1, 0, 1}));
  EXPECT_EQ(placement.node_pes, (std::vector<std::vector<int>>{{0, 2}, {1, 4}, {3}}));
  EXPECT_EQ(placement.my_node(), 1);
  EXPECT_EQ(placement.my_local_pe(), 1);
}

TEST(Placement, VirtualNodesCountNotMachines) {
  std::vector<PeHost> hosts = hosts_on({0, 1});
  hosts[0].machine_id = hosts[1].machine_id = 5;
  EXPECT_EQ(place(0, hosts).n_nodes(), 2);
  hosts = hosts_on({0, 0});
  hosts[1].machine_id = 6;
  EXPECT_EQ(place(0, hosts).n_nodes(), 1);
}

TEST(Placement, EqualHostNamesAreNotOneNode) {
  const Placement placement = place_on({0, 1});
  ASSERT_EQ(placement.hosts[0].host_name, placement.hosts[1].host_name);
  EXPECT_EQ(placement.n_nodes(), 2);
}

TEST(Placement, RandomJobsAreConsistent) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<int> nodes(1 + random() % 40);
    for (int& node : nodes)
      node = static_cast<int>(random() % 6);
    const Placement placement = place_on(nodes);
    std::size_t members = 0;
    for (const std::vector<int>& pes : placement.node_pes) {
      EXPECT_TRUE(std::is_sorted(pes.begin(), pes.end()));
      members += pes.size();
    }
    EXPECT_EQ(members, nodes.size());
    for (std::size_t pe = 0; pe < nodes.size(); ++pe) {
      const auto node = static_cast<std::size_t>(placement.node[pe]);
      const auto local = static_cast<std::size_t>(placement.local_pe[pe]);
      EXPECT_EQ(placement.node_pes[node][local], static_cast<int>(pe));
      for (std::size_t other = 0; other < nodes.size(); ++other)
        EXPECT_EQ(placement.node[pe] == placement.node[other], nodes[pe] == nodes[other]);
    }
  }
}

TEST(Placement, RefusesAPeOutsideTheJob) {
  EXPECT_THROW(place(-1, hosts_on({0, 0})), Error);
  EXPECT_THROW(place(2, hosts_on({0, 0})), Error);
  EXPECT_THROW(place(0, {}), Error);
}

TEST(Placement, Names) {
  EXPECT_STREQ(to_string(Distribution::block), "block");
  EXPECT_STREQ(to_string(Distribution::round_robin), "round-robin");
  EXPECT_STREQ(to_string(Distribution::irregular), "irregular");
}

} // namespace
namespace {

void expect_other(const std::vector<std::string>& programs, int pe, int reference_pe) {
  const auto other = find_other_program(programs);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->pe, pe);
  EXPECT_EQ(other->reference_pe, reference_pe);
}

TEST(SameProgram, OneIsEnough) {
  EXPECT_FALSE(find_other_program({}));
  EXPECT_FALSE(find_other_program({"a"}));
  EXPECT_FALSE(find_other_program({"a", "a", "a"}));
}

TEST(SameProgram, TheOneOfFewIsTheOther) {
  expect_other({"a", "a", "b"}, 2, 0);
  expect_other({"b", "a", "a"}, 0, 1);
  expect_other({"a", "b", "a", "b", "b"}, 0, 1);
  expect_other({"c", "b", "a", "a"}, 0, 2);
}

TEST(SameProgram, TheFirstOfEqualProgramsIsTheJobs) {
  expect_other({"a", "b"}, 1, 0);
  expect_other({"b", "a", "a", "b"}, 1, 0);
}

TEST(SameProgram, NoSymmetricVariablesAreAnotherProgram) {
  expect_other({"a", "", "a"}, 1, 0);
}

} // namespace
} // namespace shmemctl
