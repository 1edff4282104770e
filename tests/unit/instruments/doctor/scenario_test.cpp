#include <gtest/gtest.h>
#include <map>
#include <set>

#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

const Check& check_of(const std::string& id) {
  for (const Check& check : all_checks())
    if (check.id == id)
      return check;
  throw std::logic_error("no check " + id);
}

CheckResult result_of(const Scenario& scenario) {
  if (scenario.verdict)
    return scenario.verdict();
  Machine machine;
  scenario.build(machine);
  const Sysroot sysroot = machine.files.sysroot();
  return check_of(scenario.check)
      .run({sysroot, machine.node, machine.environment, nullptr, machine.python});
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect(const Scenario& scenario) {
  SCOPED_TRACE(scenario.check + ": " + scenario.name);
  const CheckResult result = result_of(scenario);
  EXPECT_STREQ(to_string(result.status), to_string(scenario.status)) << result.reason;
  EXPECT_TRUE(contains(result.evidence, scenario.evidence)) << result.evidence;
  EXPECT_TRUE(contains(result.fix, scenario.fix)) << result.fix;
  EXPECT_FALSE(result.reason.empty());
  for (const std::string& text : {result.reason, result.evidence, result.fix})
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  const bool problem = result.status == CheckStatus::warning || result.status == CheckStatus::fail;
  if (problem) {
    EXPECT_FALSE(result.fix.empty());
    EXPECT_FALSE(result.evidence.empty());
    EXPECT_FALSE(scenario.evidence.empty()) << "the test must name the evidence";
    EXPECT_FALSE(scenario.fix.empty()) << "the test must name the fix";
  }
  if (result.status == CheckStatus::pass) {
    EXPECT_EQ(result.fix, "");
    EXPECT_FALSE(result.evidence.empty());
  }
}

void expect_all(const Scenarios& scenarios) {
  for (const Scenario& scenario : scenarios)
    expect(scenario);
}

Scenarios all_scenarios() {
  Scenarios all;
  for (Scenarios part :
       {driver_scenarios(), gpudirect_scenarios(), gpu_scenarios(), gpu_device_scenarios(),
        pcie_scenarios(), rdma_scenarios(), gid_scenarios(), memory_scenarios(), system_scenarios(),
        library_scenarios(), libfabric_scenarios(), transport_scenarios(), kernel_log_scenarios(),
        rdma_sibling_scenarios(), software_scenarios(), network_setting_scenarios(),
        descriptor_scenarios()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace

TEST(DoctorScenarios, Driver) {
  expect_all(driver_scenarios());
}
TEST(DoctorScenarios, GpuDirect) {
  expect_all(gpudirect_scenarios());
}
TEST(DoctorScenarios, Gpu) {
  expect_all(gpu_scenarios());
  expect_all(gpu_device_scenarios());
}
TEST(DoctorScenarios, Pcie) {
  expect_all(pcie_scenarios());
}
TEST(DoctorScenarios, Rdma) {
  expect_all(rdma_scenarios());
}
TEST(DoctorScenarios, Gid) {
  expect_all(gid_scenarios());
}
TEST(DoctorScenarios, Memory) {
  expect_all(memory_scenarios());
}
TEST(DoctorScenarios, System) {
  expect_all(system_scenarios());
}
TEST(DoctorScenarios, Library) {
  expect_all(library_scenarios());
}
TEST(DoctorScenarios, Libfabric) {
  expect_all(libfabric_scenarios());
}

TEST(DoctorScenarios, Transport) {
  expect_all(transport_scenarios());
}

TEST(DoctorScenarios, RdmaSiblings) {
  expect_all(rdma_sibling_scenarios());
}
TEST(DoctorScenarios, KernelLog) {
  expect_all(kernel_log_scenarios());
}

TEST(DoctorScenarios, NetworkSettings) {
  expect_all(network_setting_scenarios());
}
TEST(DoctorScenarios, Descriptors) {
  expect_all(descriptor_scenarios());
}
TEST(DoctorScenarios, Software) {
  expect_all(software_scenarios());
}

TEST(DoctorScenarios, EveryCheckIsTestedHealthyBrokenAndAbsent) {
  std::map<std::string, std::set<CheckStatus>> seen;
  for (const Scenario& scenario : all_scenarios())
    seen[scenario.check].insert(scenario.status);
  for (const Check& check : all_checks()) {
    const std::set<CheckStatus>& statuses = seen[check.id];
    EXPECT_TRUE(statuses.count(CheckStatus::pass)) << check.id << " is never healthy";
    EXPECT_TRUE(statuses.count(CheckStatus::skipped)) << check.id << " is never absent";
    const bool optional = check.group == "library" && check.id != "libcuda" &&
                          !statuses.count(CheckStatus::warning); // a launcher's: never a problem
    EXPECT_TRUE(optional || statuses.count(CheckStatus::warning) ||
                statuses.count(CheckStatus::fail))
        << check.id << " is never broken";
  }
  EXPECT_EQ(seen.size(), all_checks().size()) << "a scenario of a check that is not in the table";
}

} // namespace shmemctl
