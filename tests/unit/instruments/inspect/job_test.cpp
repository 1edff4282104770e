// What several nodes found, joined: verdict over the whole job, findings of several hosts.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "src/instruments/inspect/job.h"
#include "tests/support/thread_bootstrap.h"

namespace shmemctl::inspect {
namespace {

/// A node with one rank of a job of SLURM.
HostInspection host_of_job(const std::string& host, int rank, Doing doing,
                           const std::string& job = "SLURM_JOB_ID 7") {
  HostInspection part;
  part.host = host;
  part.processes =
      nlohmann::json::array({{{"pid", 100}, {"skipped", nlohmann::json::array()}}}).dump();
  part.findings = {{"env-ignored", Severity::warning, "PID 100 (python3)", "message", "fix"}};
  JobMember member;
  member.host = host;
  member.job = job;
  member.pid = 100;
  member.program = "python3";
  member.rank = rank;
  member.activity.doing = doing;
  member.activity.compilers = {{777, "ptxas"}};
  part.members = {member};
  NicCounter counter;
  counter.host = host;
  counter.device = "mlx5_0";
  counter.counter = "sent_bytes";
  counter.before = 1;
  part.counters = {counter};
  return part;
}

TEST(InspectJobOfHosts, TheRankThatAllWaitFor) {
  const JobInspection joined =
      join_hosts({host_of_job("nodea", 0, Doing::runs), host_of_job("nodeb", 1, Doing::compiles),
                  host_of_job("nodec", 2, Doing::runs)},
                 true);
  ASSERT_EQ(joined.processes.size(), 3U);
  EXPECT_EQ(joined.processes[1]["host"], "nodeb");
  for (const auto& process : joined.processes)
    EXPECT_EQ(
        process["job_verdict"],
        "rank 1, PID 100 (python3) on nodeb, still compiles: ptxas (PID 777): the others wait "
        "for it");
  ASSERT_EQ(joined.findings.size(), 2U);
  EXPECT_EQ(joined.findings[0].subject, "nodea, nodeb, nodec: PID 100 (python3)");
  EXPECT_EQ(joined.findings[1].id, "rank-awaited");
  EXPECT_EQ(joined.counters.size(), 3U);
}

TEST(InspectJobOfHosts, ChildrenOfOneNumberOnTwoHostsAreTwoJobs) {
  const JobInspection joined =
      join_hosts({host_of_job("nodea", 0, Doing::runs, "children of PID 1"),
                  host_of_job("nodeb", 1, Doing::stopped, "children of PID 1")},
                 true);
  for (const auto& process : joined.processes)
    EXPECT_FALSE(process.contains("job_verdict"));
  ASSERT_EQ(joined.findings.size(), 1U);
  EXPECT_EQ(joined.findings[0].id, "env-ignored");
}

TEST(InspectJobOfHosts, ALocalRankThatIsMissingOnOneHost) {
  std::vector<HostInspection> hosts = {host_of_job("nodea", 0, Doing::runs),
                                       host_of_job("nodeb", 2, Doing::runs)};
  hosts[0].members.push_back(hosts[0].members[0]);
  hosts[0].members[1].rank = 1;
  for (HostInspection& host : hosts)
    for (std::size_t at = 0; at < host.members.size(); ++at) {
      host.members[at].local_rank = static_cast<int>(at);
      host.members[at].local_size = 2;
    }
  const Findings findings = join_hosts(hosts, true).findings;
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_NE(findings[1].message.find("local rank 1 on nodeb is not among"), std::string::npos)
      << findings[1].message;
  EXPECT_EQ(join_hosts(hosts, false).findings.size(), 1U);
}

TEST(InspectJobOfHosts, APartThatCannotBeRead) {
  for (const char* text : {"", "{", "{}", "[1]"}) {
    HostInspection part = host_of_job("nodea", 0, Doing::runs);
    part.processes = text;
    EXPECT_THROW(join_hosts({part}, true), Error) << text;
  }
}

TEST(InspectJobOfHosts, WhoLooks) {
  const std::vector<InspectingPe> pes = {{7, 10}, {7, 11}, {8, 10}, {7, 12}};
  EXPECT_TRUE(looks(pes, 0));
  EXPECT_FALSE(looks(pes, 1));
  EXPECT_TRUE(looks(pes, 2));
  EXPECT_FALSE(looks(pes, 3));
  EXPECT_EQ(pids_beside(pes, 1), (std::vector<int>{10, 11, 12}));
  EXPECT_EQ(machine_count(pes), 2);
}

TEST(InspectJobOfHosts, PartsArriveWhole) {
  test::BootstrapArea area(3);
  std::vector<HostInspection> gathered;
  std::vector<std::thread> threads;
  for (int pe = 0; pe < 3; ++pe)
    threads.emplace_back([&area, &gathered, pe] {
      test::ThreadBootstrap bootstrap(area, pe);
      const Deadline deadline = Deadline::after(std::chrono::seconds(60));
      HostInspection own = host_of_job("node" + std::to_string(pe), pe, Doing::waits);
      // Longer than a piece; PE 1 does not look.
      if (pe == 2)
        own.processes = "[\"" + std::string(7U << 20, 'x') + "\"]";
      const auto all = gather_inspections(bootstrap, pe == 1 ? nullptr : &own, deadline);
      if (pe == 0)
        gathered = all;
      else
        EXPECT_TRUE(all.empty());
    });
  for (std::thread& thread : threads)
    thread.join();
  ASSERT_EQ(gathered.size(), 2U);
  EXPECT_EQ(gathered[0].host, "node0");
  EXPECT_EQ(gathered[1].host, "node2");
  EXPECT_EQ(gathered[1].processes.size(), (7U << 20) + 4);
  ASSERT_EQ(gathered[1].members.size(), 1U);
  EXPECT_EQ(gathered[1].members[0].activity.doing, Doing::waits);
  EXPECT_EQ(gathered[1].members[0].activity.compilers.at(0).second, "ptxas");
  EXPECT_EQ(gathered[1].findings[0].severity, Severity::warning);
  EXPECT_EQ(gathered[1].counters[0].before, 1U);
  EXPECT_EQ(gathered[1].counters[0].delta, std::nullopt);
}

} // namespace
} // namespace shmemctl::inspect
