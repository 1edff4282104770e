#include "src/instruments/check/acceptance.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/instruments/bringup/gpu_pairs.h"

namespace shmemctl {
namespace {

const JobItem item{"bringup", "4 PEs come up", {"run", "-n", "4", "bringup"}, 8};

Report job_report() {
  Report report;
  report.started_at = report.finished_at = "2026-01-02T03:04:05Z";
  report.status = ReportStatus::complete;
  report.job.pes = 4;
  report.phases = {{"bootstrap", 1.5, 0}};
  ResultRow row;
  row.case_name = "bringup.put";
  row.verified = Verified::passed;
  report.results = {row};
  return report;
}

ChildResult child_of(const Report& report) {
  ChildResult child;
  child.out = to_text(to_json(report));
  return child;
}

TEST(Acceptance, AGoodJobsResultsAndVerdict) {
  Report whole;
  absorb(item, child_of(job_report()), whole);
  ASSERT_EQ(whole.checks.size(), 1U);
  EXPECT_EQ(whole.checks[0].id, "bringup");
  EXPECT_EQ(whole.checks[0].status, "pass");
  EXPECT_EQ(whole.checks[0].reason, "1 of 1 results verified");
  EXPECT_EQ(whole.results.size(), 1U);
  EXPECT_EQ(whole.phases.size(), 1U);
  EXPECT_EQ(whole.job.pes, 4);
  EXPECT_TRUE(whole.findings.empty());
}

TEST(Acceptance, KernelsAreMeasuredWhereTheBringUpHadGpus) {
  Report whole, report = job_report();
  EXPECT_FALSE(had_gpus(absorb(item, child_of(report), whole)));
  report.checks.push_back(
      {gpu_devices_row, "the GPU of each PE", "skipped", "none", "", "", "gpu"});
  EXPECT_FALSE(had_gpus(absorb(item, child_of(report), whole)));
  report.checks[0].status = "pass";
  EXPECT_TRUE(had_gpus(absorb(item, child_of(report), whole)));
  const JobItem job = gpu_job();
  EXPECT_EQ(job.id, "bench-gpu");
  const std::vector<std::string> wanted{"--initiator", "gpu", "--quick"};
  EXPECT_NE(std::search(job.arguments.begin(), job.arguments.end(), wanted.begin(), wanted.end()),
            job.arguments.end());
  EXPECT_LE(job.timeout_s, 30);
  EXPECT_FALSE(had_gpus(absorb(item, {}, whole))) << "a bring-up that died had none";
}

/// What kernels of a job found wrong fails that part.
TEST(Acceptance, AGpuJobsWrongDataIsItsVerdict) {
  Report bench = job_report(), whole;
  bench.results[0].case_name = "put";
  bench.results[0].status = RowStatus::fail;
  bench.results[0].verified = Verified::failed;
  bench.results[0].reason = "PE 1 at offset 8";
  bench.findings = {{"bench-corrupt", Severity::error, "bench put 1M", "wrong data", "mend"}};
  ChildResult child = child_of(bench);
  child.exit_status = 1;
  absorb(gpu_job(), child, whole);
  ASSERT_EQ(whole.checks.size(), 1U);
  EXPECT_EQ(whole.checks[0].id, "bench-gpu");
  EXPECT_EQ(whole.checks[0].status, "fail");
  EXPECT_EQ(whole.checks[0].reason, "1 error: wrong data");
}

TEST(Acceptance, AFindingOfTheJobIsTheVerdict) {
  Report report = job_report();
  report.findings = {{"a-warning", Severity::warning, "x", "odd", "look"},
                     {"pair-corrupt", Severity::error, "y", "wrong data", "mend"}};
  Report whole;
  absorb(item, child_of(report), whole);
  EXPECT_EQ(whole.checks[0].status, "fail");
  EXPECT_EQ(whole.checks[0].reason, "1 error, 1 warning: wrong data");
  EXPECT_EQ(whole.checks[0].fix, "mend");
  EXPECT_TRUE(has_error(whole.findings));
}

TEST(Acceptance, AJobThatDiedSaysItsOwnLastWords) {
  ChildResult child;
  child.exit_status = 3;
  child.err = "noise\nshmemctl: error: cannot map heap of PE 2: No space left\n"
              "shmemctl: fix: give /dev/shm more room\n";
  Report whole;
  absorb(item, child, whole);
  ASSERT_EQ(whole.findings.size(), 1U);
  EXPECT_EQ(whole.findings[0].id, "check-bringup");
  EXPECT_EQ(whole.findings[0].message, "4 PEs come up: cannot map heap of PE 2: No space left");
  EXPECT_EQ(whole.findings[0].fix, "give /dev/shm more room");
  EXPECT_EQ(whole.checks[0].status, "fail");
}

TEST(Acceptance, AJobThatHangsWasKilledOrWritesNonsenseFails) {
  ChildResult hung, killed, nonsense;
  hung.timed_out = true;
  killed.exit_status = 137;
  nonsense.out = "{\"schema\": 1}";
  for (const auto& [child, words] :
       {std::pair(hung, "did not end within"), std::pair(killed, "killed by signal 9"),
        std::pair(nonsense, "exit code 0 and no results")}) {
    Report whole;
    absorb(item, child, whole);
    ASSERT_EQ(whole.findings.size(), 1U) << words;
    EXPECT_NE(whole.findings[0].message.find(words), std::string::npos)
        << whole.findings[0].message;
    EXPECT_EQ(whole.findings[0].fix, "run it alone: shmemctl run -n 4 bringup");
  }
}

/// The signal that ends it was sent by this program.
TEST(Acceptance, AJobThatWasEndedForItsTimeIsNotSaidToBeInterrupted) {
  ChildResult hung = child_of(job_report());
  hung.timed_out = true;
  hung.exit_status = 130;
  hung.err = "shmemctl: error: cannot finish the run: interrupted by SIGTERM, which process 7 "
             "sent\nshmemctl: fix: run it again\n";
  Report whole;
  absorb(item, hung, whole);
  ASSERT_EQ(whole.findings.size(), 1U);
  EXPECT_EQ(whole.findings[0].message, "4 PEs come up: it did not end within 8 s");
  EXPECT_EQ(whole.findings[0].fix, "run it alone: shmemctl run -n 4 bringup");
}

/// Nor does the report that it wrote when it received the signal.
TEST(Acceptance, NeitherIsOneThatWroteItsReportThen) {
  Report report = job_report();
  report.status = ReportStatus::incomplete;
  report.findings = {{"run-aborted", Severity::error, "SIGTERM",
                      "interrupted by SIGTERM, which process 7 sent", "run it again"}};
  ChildResult hung = child_of(report);
  hung.timed_out = true;
  hung.exit_status = 130;
  Report whole;
  absorb(item, hung, whole);
  ASSERT_EQ(whole.findings.size(), 1U);
  EXPECT_EQ(whole.findings[0].message, "4 PEs come up: it did not end within 8 s");
}

TEST(Acceptance, ASoakMeasuresMoreThanAShortCheck) {
  const std::vector<JobItem> brief = acceptance_jobs(), soak = acceptance_jobs(soak_level);
  ASSERT_EQ(brief.size(), soak.size());
  for (std::size_t i = 0; i < brief.size(); ++i) {
    EXPECT_EQ(brief[i].id, soak[i].id);
    EXPECT_GT(soak[i].timeout_s, brief[i].timeout_s);
    EXPECT_EQ(std::count(soak[i].arguments.begin(), soak[i].arguments.end(), "--quick"), 0);
  }
  EXPECT_EQ(std::count(brief[1].arguments.begin(), brief[1].arguments.end(), "--quick"), 1);
  EXPECT_EQ(std::count(soak[1].arguments.begin(), soak[1].arguments.end(), "--duration"), 1);
}

TEST(Acceptance, AMachineWithoutGpuAndRdmaDeviceHasNothingToCheck) {
  Node node;
  EXPECT_TRUE(nothing_to_check(node));
  Nic nic;
  nic.name = "eth0";
  nic.rdma = known(false, "a test");
  node.nics = {nic};
  EXPECT_TRUE(nothing_to_check(node));
  nic.rdma = {}; // unknown: the NIC may have RDMA
  node.nics = {nic};
  EXPECT_FALSE(nothing_to_check(node));
  node.nics.clear();
  node.gpus.emplace_back();
  EXPECT_FALSE(nothing_to_check(node));
}

/// Its warnings do not hide how it ended.
TEST(Acceptance, AJobThatProvesNothingFails) {
  Report report = job_report();
  report.findings = {{"bench-unpinned", Severity::warning, "PE 0", "not bound", "bind it"}};
  ChildResult late = child_of(report), hung = child_of(report);
  late.exit_status = 3;
  late.err = "shmemctl: error: cannot leave the job: PE 1 was lost\n";
  hung.timed_out = true;
  Report cut = report, empty = report, unchecked = report;
  cut.status = ReportStatus::incomplete;
  empty.results.clear();
  unchecked.results[0].verified = Verified::unchecked;
  unchecked.results[0].reason = "verification is switched off";
  for (const auto& [child, words] :
       {std::pair(late, "PE 1 was lost"), std::pair(hung, "did not end within"),
        std::pair(child_of(cut), "exit code 0, but its report is incomplete"),
        std::pair(child_of(empty), "no results"),
        std::pair(child_of(unchecked), "exit code 0, but its report is incomplete")}) {
    Report whole;
    absorb(item, child, whole);
    EXPECT_TRUE(has_error(whole.findings)) << words;
    ASSERT_EQ(whole.findings.size(), 2U) << words;
    EXPECT_NE(whole.findings[1].message.find(words), std::string::npos)
        << whole.findings[1].message;
    EXPECT_EQ(whole.checks[0].status, "fail");
  }
}

TEST(Acceptance, VerdictOfAPartOfThisProcess) {
  Report whole;
  add_verdict("topo", "the map", {}, "nothing is wrong", whole);
  add_verdict("doctor", "preconditions", {{"memlock", Severity::warning, "s", "low", "raise"}},
              "all passed", whole);
  EXPECT_EQ(whole.checks[0].status, "pass");
  EXPECT_EQ(whole.checks[1].status, "warning");
  EXPECT_EQ(whole.checks[1].reason, "1 warning: low");
  EXPECT_EQ(whole.checks[1].group, verdict_group);
}

} // namespace
} // namespace shmemctl
