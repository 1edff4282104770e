// topo and doctor, run one after the other by check, print one set of settings for a node's NICs.
#include <gtest/gtest.h>
#include <random>

#include "src/model/topo/advice/advice.h"
#include "src/model/topo/mapping/request.h"
#include "tests/support/printed_lines.h"
#include "tests/support/random_case.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

/// The part of the settings that a shell would have.
Environment environment_of(const NvshmemSettings& settings, World world) {
  Environment environment{{"SHMEMCTL_WORLD", to_string(world)}};
  if (settings.hca_list)
    environment["NVSHMEM_HCA_LIST"] = *settings.hca_list;
  if (settings.hca_pe_mapping)
    environment["NVSHMEM_HCA_PE_MAPPING"] = *settings.hca_pe_mapping;
  if (settings.enable_nic_pe_mapping)
    environment["NVSHMEM_ENABLE_NIC_PE_MAPPING"] = "1";
  return environment;
}

Findings topo_findings(const Node& node, const Environment& environment) {
  const MappingRequest request = mapping_request(Options(environment), node);
  Findings all = check_node(node);
  for (Finding& finding : check_mapping(node, map_nics(node, request)))
    all.push_back(std::move(finding));
  return all;
}

/// What doctor says about ports that are unlike the others.
Findings doctor_findings(const Node& node, const Environment& environment) {
  const fake::FakeMachine files;
  const Sysroot sysroot = files.sysroot();
  Findings findings;
  for (const CheckOutcome& outcome :
       run_checks({sysroot, node, environment}, {"rdma-link-layer", "rdma-rate"}, {})) {
    const CheckStatus status = outcome.result.status;
    if (status == CheckStatus::fail || status == CheckStatus::warning)
      findings.push_back({outcome.check->id,
                          status == CheckStatus::fail ? Severity::error : Severity::warning, "node",
                          outcome.result.reason, outcome.result.fix});
  }
  return findings;
}

} // namespace

TEST(DoctorAgreement, ItsFixesForNicsAreThoseOfTopo) {
  std::mt19937_64 random(28);
  int common = 0;
  for (int round = 0; round < 800 && !HasFailure(); ++round) {
    test::RandomCase generator(random);
    const Node node = generator.node();
    const MappingRequest request = generator.request(node);
    const Environment environment = environment_of(request.nvshmem, request.world);
    const Findings by_topo = topo_findings(node, environment);
    for (const Finding& finding : doctor_findings(node, environment)) {
      const auto same = std::find_if(by_topo.begin(), by_topo.end(), [&](const Finding& other) {
        return other.message == finding.message && other.fix == finding.fix &&
               other.severity == finding.severity;
      });
      EXPECT_NE(same, by_topo.end())
          << "round " << round << ": " << finding.message << "\nfix: " << finding.fix;
      ++common;
    }
  }
  EXPECT_GT(common, 25);
}

TEST(DoctorAgreement, AfterTheFixesOfTopoItHasNothingToSay) {
  std::mt19937_64 random(29);
  int healed = 0;
  for (int round = 0; round < 800 && !HasFailure(); ++round) {
    test::RandomCase generator(random);
    const Node node = generator.node();
    const MappingRequest request = generator.request(node);
    const Environment before = environment_of(request.nvshmem, request.world);
    test::PrintedLines lines;
    for (const Finding& finding : topo_findings(node, before))
      if (test::has_lines(finding))
        lines.read(finding.fix);
    Environment after = before;
    bool one_for_all = true;
    for (const auto& [variable, values] : lines.variables()) {
      one_for_all = one_for_all && values.size() < 2;
      if (values.empty())
        after.erase(variable);
      else
        after[variable] = values[0];
    }
    const Findings left = one_for_all ? doctor_findings(node, after) : Findings{};
    for (const Finding& finding : left) {
      EXPECT_FALSE(test::has_lines(finding)) << "round " << round << ": " << finding.message;
    }
    healed += one_for_all && left.empty() && !doctor_findings(node, before).empty() ? 1 : 0;
  }
  EXPECT_GT(healed, 10);
}

} // namespace shmemctl
