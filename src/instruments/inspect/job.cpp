#include "src/instruments/inspect/job.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "src/base/folded_names.h"
#include "src/base/json_values.h"
#include "src/base/text.h"

namespace shmemctl {

// These functions are in the namespace of their types, because archives look for them there.
static void serialize(Archive& archive, Finding& finding) {
  archive(finding.id);
  archive.choice(finding.severity, Severity::error);
  archive(finding.subject, finding.message, finding.fix);
}

static void serialize(Archive& archive, NicCounter& counter) {
  archive(counter.host, counter.device, counter.counter, counter.port, counter.before,
          counter.after, counter.delta, counter.reason);
}

} // namespace shmemctl

namespace shmemctl::inspect {

namespace {

using nlohmann::json;

/// The findings of all hosts; those that differ only in their subject are merged.
Findings joined_findings(const std::vector<HostInspection>& hosts) {
  struct Group {
    Finding finding;
    std::vector<std::string> hosts, subjects;
  };
  std::vector<Group> groups;
  std::map<std::tuple<std::string, int, std::string, std::string>, std::size_t> index;
  for (const HostInspection& part : hosts)
    for (const Finding& finding : part.findings) {
      const auto key =
          std::tuple(finding.id, static_cast<int>(finding.severity), finding.message, finding.fix);
      const auto known = index.find(key);
      if (known == index.end()) {
        index.emplace(key, groups.size());
        groups.push_back({finding, {part.host}, {finding.subject}});
        continue;
      }
      groups[known->second].hosts.push_back(part.host);
      groups[known->second].subjects.push_back(finding.subject);
    }
  Findings findings;
  for (Group& group : groups) {
    const bool same = std::all_of(
        group.subjects.begin(), group.subjects.end(),
        [&group](const std::string& subject) { return subject == group.subjects.front(); });
    group.finding.subject = fold_names(group.hosts) + ": " + group.subjects.front() +
                            (same ? "" : fmt::format(" (and {} more)", group.subjects.size() - 1));
    findings.push_back(std::move(group.finding));
  }
  return findings;
}

Error bad_host_part(const std::string& host) {
  return {ExitCode::unavailable, "inspect of " + host, "read what it found",
          "its message cannot be parsed", "start the same shmemctl on all nodes"};
}

} // namespace

void serialize(Archive& archive, HostInspection& part) {
  archive(part.host, part.processes, part.findings, part.members, part.counters);
}

HostInspection host_inspection(const Inspection& inspection, const json& processes,
                               const std::string& host, std::vector<NicCounter> counters) {
  HostInspection part;
  part.host = host;
  part.processes = json_line(processes);
  for (const Finding& finding : inspection.findings)
    if (finding.id != "rank-awaited")
      part.findings.push_back(finding);
  std::vector<Member> members;
  for (const Inspected& each : inspection.processes)
    members.push_back({&each.process, rank_of(each.process), each.activity});
  part.members = job_members(members);
  for (JobMember& member : part.members)
    member.host = host;
  part.counters = std::move(counters);
  return part;
}

JobInspection join_hosts(const std::vector<HostInspection>& hosts, bool whole) {
  JobInspection job;
  job.processes = json::array();
  job.findings = joined_findings(hosts);
  std::vector<JobMember> members;
  for (const HostInspection& part : hosts) {
    members.insert(members.end(), part.members.begin(), part.members.end());
    job.counters.insert(job.counters.end(), part.counters.begin(), part.counters.end());
  }
  // If the job's name only tells the parent of its ranks, the job is on one host only.
  std::map<std::tuple<std::string, int>, const JobVerdict*> verdict_of;
  const std::vector<JobVerdict> verdicts = judge_jobs(members, whole);
  for (const JobVerdict& verdict : verdicts)
    for (const auto& place : verdict.places)
      verdict_of[{place.first, place.second}] = &verdict;
  for (const HostInspection& part : hosts) {
    json processes = try_from_json_line(part.processes);
    if (!processes.is_array())
      throw bad_host_part(part.host);
    for (json& process : processes) {
      if (!process.is_object())
        throw bad_host_part(part.host);
      process["host"] = part.host;
      const auto pid = process.contains("pid") ? whole_number<int>(process["pid"]) : std::nullopt;
      const auto verdict = verdict_of.find({part.host, pid.value_or(0)});
      if (verdict != verdict_of.end()) {
        process["job"] = verdict->second->job;
        process["job_verdict"] = verdict->second->verdict;
      }
      job.processes.push_back(std::move(process));
    }
  }
  const Findings awaited = job_findings(verdicts);
  job.findings.insert(job.findings.end(), awaited.begin(), awaited.end());
  return job;
}

std::vector<InspectingPe> gather_pes(Bootstrap& bootstrap, const InspectingPe& own,
                                     const Deadline& deadline) {
  return allgather_value(bootstrap, own, deadline);
}

bool looks(const std::vector<InspectingPe>& pes, int pe) {
  const std::uint64_t machine = pes.at(static_cast<std::size_t>(pe)).machine_id;
  for (int other = 0; other < pe; ++other)
    if (pes[static_cast<std::size_t>(other)].machine_id == machine)
      return false;
  return true;
}

std::vector<int> pids_beside(const std::vector<InspectingPe>& pes, int pe) {
  std::vector<int> pids;
  for (const InspectingPe& other : pes)
    if (other.machine_id == pes.at(static_cast<std::size_t>(pe)).machine_id)
      pids.push_back(static_cast<int>(other.pid));
  return pids;
}

int machine_count(const std::vector<InspectingPe>& pes) {
  std::set<std::uint64_t> machines;
  for (const InspectingPe& pe : pes)
    machines.insert(pe.machine_id);
  return static_cast<int>(machines.size());
}

std::vector<HostInspection> gather_inspections(Bootstrap& bootstrap, const HostInspection* own,
                                               const Deadline& deadline) {
  std::string text;
  if (own != nullptr)
    text = to_bytes(*own);
  const auto sizes = allgather_value<std::uint64_t>(bootstrap, text.size(), deadline);
  const std::uint64_t longest = *std::max_element(sizes.begin(), sizes.end());
  // A PE may have to forward the pieces of half of all PEs, so they are limited to 16 MiB at a
  // time.
  const std::size_t piece = std::clamp<std::size_t>(
      (std::size_t{16} << 20) / static_cast<std::size_t>(bootstrap.size()), 4096, 1U << 20);
  std::vector<std::string> texts(sizes.size());
  for (std::size_t at = 0; at < longest; at += piece) {
    const std::vector<std::string> pieces =
        gather_text(bootstrap, at < text.size() ? text.substr(at, piece) : std::string(), deadline);
    for (std::size_t pe = 0; pe < pieces.size(); ++pe)
      texts[pe] += pieces[pe];
  }
  std::vector<HostInspection> parts;
  for (std::size_t pe = 0; pe < texts.size(); ++pe)
    if (!texts[pe].empty())
      parts.push_back(value_of_pe<HostInspection>(texts[pe], pe, "inspection"));
  return parts;
}

} // namespace shmemctl::inspect
