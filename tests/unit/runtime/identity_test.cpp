// Which machine a process is on: from files of made-up machines, and from this one.
#include "src/runtime/identity.h"

#include <array>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/bootstrap/select.h"
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

// NVSHMEM hashes the host name: two containers of one name count as one node, and two of one
// machine with names of their own as two.
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

TEST(Identity, RefusesAVirtualNodeThatIsNoNumber) {
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
} // namespace shmemctl
