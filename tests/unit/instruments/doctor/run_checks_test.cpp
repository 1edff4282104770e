#include "src/instruments/doctor/doctor.h"

#include <chrono>
#include <gtest/gtest.h>
#include <set>

#include "src/base/error.h"
#include "src/instruments/doctor/checks.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

std::vector<std::string> ids_of(const std::vector<CheckOutcome>& outcomes) {
  std::vector<std::string> ids;
  for (const CheckOutcome& outcome : outcomes)
    ids.push_back(outcome.check->id);
  return ids;
}

std::vector<CheckOutcome> run(Machine& machine, const std::vector<std::string>& only,
                              const std::vector<std::string>& skip) {
  const Sysroot sysroot = machine.files.sysroot();
  return run_checks({sysroot, machine.node, machine.environment}, only, skip);
}

} // namespace

TEST(RunChecks, IdsAreUniqueAndKebabCase) {
  const std::set<std::string> groups = {"driver", "gpu",    "pcie",       "rdma",     "transport",
                                        "memory", "system", "kernel-log", "software", "library"};
  std::set<std::string> seen = groups; // an id must not be a group's name either
  for (const Check& check : all_checks()) {
    EXPECT_TRUE(seen.insert(check.id).second) << check.id;
    EXPECT_EQ(check.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
              std::string::npos)
        << check.id;
    EXPECT_TRUE(groups.count(check.group)) << check.group;
    EXPECT_FALSE(check.title.empty());
  }
}

TEST(RunChecks, RunsAllInTheOrderOfTheTable) {
  Machine machine;
  const std::vector<CheckOutcome> outcomes = run(machine, {}, {});
  ASSERT_EQ(outcomes.size(), all_checks().size());
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    EXPECT_EQ(outcomes[i].check, &all_checks()[i]);
}

TEST(RunChecks, AnEmptyTreeIsSkippedAndNotBroken) {
  Machine machine;
  for (const CheckOutcome& outcome : run(machine, {}, {}))
    EXPECT_STREQ(to_string(outcome.result.status), "skipped")
        << outcome.check->id << ": " << outcome.result.reason;
}

TEST(RunChecks, OnlyAndSkipTakeIdsAndGroups) {
  Machine machine;
  EXPECT_EQ(ids_of(run(machine, {"dev-shm", "memlock"}, {})),
            (std::vector<std::string>{"memlock", "dev-shm"}));
  EXPECT_EQ(ids_of(run(machine, {"memory"}, {"memlock", "hugepages"})),
            (std::vector<std::string>{"dev-shm", "numa-balancing"}));
  const std::vector<CheckOutcome> rest = run(machine, {},
                                             {"driver", "gpu", "pcie", "rdma", "transport",
                                              "system", "kernel-log", "software", "library"});
  EXPECT_EQ(ids_of(rest),
            (std::vector<std::string>{"memlock", "dev-shm", "hugepages", "numa-balancing"}));
  EXPECT_TRUE(run(machine, {"memory"}, {"memory"}).empty());
}

TEST(RunChecks, EachIsSaidBeforeItRuns) {
  Machine machine;
  const Sysroot sysroot = machine.files.sysroot();
  std::vector<std::string> said;
  run_checks(
      {sysroot, machine.node, machine.environment}, {"memory"}, {},
      [&said](const CheckOutcome& outcome) { said.push_back(outcome.check->id + " ended"); },
      [&said](const Check& check) { said.push_back(check.id); });
  EXPECT_EQ(said, (std::vector<std::string>{"memlock", "memlock ended", "dev-shm", "dev-shm ended",
                                            "hugepages", "hugepages ended", "numa-balancing",
                                            "numa-balancing ended"}));
}

TEST(RunChecks, AFileReplacesTheKernelLogOfTheMachine) {
  Machine machine;
  machine.files.write("/var/log/kern.log", "[ 1.0] Linux version 6.8.0\n");
  const Sysroot sysroot = machine.files.sysroot();
  const KernelLogText log{"old.log", "[ 1.0] NVRM: Xid (PCI:0000:13:00): 79, x\n"};
  const auto outcomes =
      run_checks({sysroot, machine.node, machine.environment, &log}, {"kernel-log-xid"}, {});
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].result.status, CheckStatus::fail);
  EXPECT_EQ(outcomes[0].result.evidence.find("old.log: 1 line"), 0U) << outcomes[0].result.evidence;
}

TEST(RunChecks, AnUnknownNameIsAUsageErrorWithTheNearestSpelling) {
  Machine machine;
  try {
    run(machine, {"memlok"}, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(error.message().find("memlok"), std::string::npos) << error.message();
    EXPECT_NE(error.fix().find("did you mean memlock?"), std::string::npos) << error.fix();
  }
  try {
    run(machine, {}, {"librarys"});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.fix().find("did you mean library?"), std::string::npos) << error.fix();
  }
  EXPECT_THROW(run(machine, {"entirely-different"}, {}), Error);
  EXPECT_THROW(run(machine, {""}, {}), Error);
}

/// Whatever is allowed here, the trial between two children says it, and a message always passes.
TEST(RunChecks, DescriptorsArePassedBetweenTwoChildren) {
  const Sysroot sysroot;
  const Node node;
  const auto outcomes =
      run_checks({sysroot, node, current_environment()}, {"pidfd-getfd", "descriptor-passing"}, {});
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_NE(outcomes[0].result.status, CheckStatus::skipped) << outcomes[0].result.reason;
  EXPECT_EQ(outcomes[1].result.status, CheckStatus::pass) << outcomes[1].result.evidence;
}

/// On any machine: nothing throws, every check has a result, and soon.
TEST(RunChecks, TheLiveMachineIsCheckedWithinASecond) {
  const Sysroot sysroot;
  Node node = healthy_node(); // makes every check look further than "no GPU on this node"
  for (const bool with_devices : {false, true}) {
    if (!with_devices)
      node = Node{};
    else
      node = healthy_node();
    const Environment environment = current_environment();
    const auto start = std::chrono::steady_clock::now();
    const std::vector<CheckOutcome> outcomes = run_checks({sysroot, node, environment}, {}, {});
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_EQ(outcomes.size(), all_checks().size());
    for (const CheckOutcome& outcome : outcomes) {
      EXPECT_FALSE(outcome.result.reason.empty()) << outcome.check->id;
      EXPECT_EQ(outcome.result.reason.find("the check failed"), std::string::npos)
          << outcome.check->id << ": " << outcome.result.reason;
    }
    RecordProperty(with_devices ? "seconds_with_devices" : "seconds", std::to_string(seconds));
    EXPECT_LT(seconds, 60.0); // on a busy machine; usually it takes well below 1 s
  }
}

} // namespace shmemctl
