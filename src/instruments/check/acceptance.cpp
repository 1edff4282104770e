#include "src/instruments/check/acceptance.h"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>

#include "src/base/input.h"
#include "src/base/text.h"
#include "src/instruments/bringup/gpu_pairs.h"

namespace shmemctl {

namespace {

constexpr const char* error_prefix = "shmemctl: error: ";
constexpr const char* fix_prefix = "shmemctl: fix: ";

/// The rest of the first line that begins with the prefix; "" if no line does.
std::string line_after(const std::string& text, const std::string& prefix) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (starts_with(line, prefix))
      return line.substr(prefix.size());
  return "";
}

std::string how_it_ended(const JobItem& item, const ChildResult& child, const Report& part) {
  if (child.timed_out)
    return fmt::format("it did not end within {:g} s", item.timeout_s);
  if (child.exit_status > 128)
    return "it was killed by signal " + std::to_string(child.exit_status - 128);
  return "it ended with exit code " + std::to_string(child.exit_status) +
         (part.results.empty()     ? " and no results"
          : child.exit_status == 0 ? ", but its report is incomplete or has no verified result"
                                   : " and no error message");
}

Finding failure_of(const JobItem& item, const ChildResult& child, const Report& part) {
  // After a timeout the job's error line only reports the SIGTERM that run_child() sent.
  const std::string error_line = child.timed_out ? "" : line_after(child.err, error_prefix);
  const std::string fix = child.timed_out ? "" : line_after(child.err, fix_prefix);
  return {"check-" + item.id, Severity::error, item.id,
          item.title + ": " + (error_line.empty() ? how_it_ended(item, child, part) : error_line),
          fix.empty() ? "run it alone: shmemctl " + join(item.arguments, " ") : fix};
}

std::string count_of(const Findings& findings, Severity severity, const std::string& word) {
  const auto count = std::count_if(findings.begin(), findings.end(),
                                   [&](const Finding& f) { return f.severity == severity; });
  return count == 0 ? "" : std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

/// Whether something is wrong that no finding reports. A job that verified nothing has not passed.
bool failed_silently(const ChildResult& child, const Report& part) {
  if (has_error(part.findings))
    return false;
  const bool well = !child.timed_out && child.exit_status == static_cast<int>(ExitCode::ok) &&
                    part.status == ReportStatus::complete;
  return !well || std::none_of(part.results.begin(), part.results.end(), [](const ResultRow& row) {
    return row.verified == Verified::passed;
  });
}

/// "12 of 14 results verified", or the first row that failed.
std::string summary_of(const Report& part) {
  std::size_t verified = 0;
  for (const ResultRow& row : part.results) {
    if (row.status == RowStatus::fail)
      return row.case_name + " failed" + (row.reason.empty() ? "" : ": " + row.reason);
    verified += row.verified == Verified::passed ? 1 : 0;
  }
  return std::to_string(verified) + " of " + std::to_string(part.results.size()) +
         " results verified";
}

const Finding& worst_of(const Findings& findings) {
  return *std::max_element(
      findings.begin(), findings.end(),
      [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
}

void add_row(const std::string& id, const std::string& title, const Findings& findings,
             const std::string& good, Report& report) {
  const std::string errors = count_of(findings, Severity::error, "error");
  const std::string warnings = count_of(findings, Severity::warning, "warning");
  CheckRow row;
  row.id = id;
  row.title = title;
  row.group = verdict_group;
  row.evidence = title;
  row.status = !errors.empty() ? "fail" : !warnings.empty() ? "warning" : "pass";
  row.reason = errors.empty() && warnings.empty()
                   ? good
                   : errors + (errors.empty() || warnings.empty() ? "" : ", ") + warnings + ": " +
                         worst_of(findings).message;
  if (!findings.empty())
    row.fix = worst_of(findings).fix;
  report.checks.push_back(row);
}

/// Adds options for few sizes and short samples or, for a soak, for many sizes of half a second
/// each.
void add_effort(JobItem& bench, int level) {
  if (level < soak_level)
    bench.arguments.emplace_back("--quick");
  else
    for (const char* word : {"--step-factor", "4", "--duration", "0.5"})
      bench.arguments.emplace_back(word);
}

void add_output(JobItem& item, const char* heap_size) {
  for (const char* word : {"--json", "-", "--symmetric-size", heap_size})
    item.arguments.emplace_back(word);
}

} // namespace

std::vector<JobItem> acceptance_jobs(int level) {
  const bool soak = level >= soak_level;
  JobItem bringup{
      "bringup", part_title("bringup"), {"run", "-n", "4", "bringup"}, soak ? 120.0 : 20.0};
  JobItem bench{"bench",
                part_title("bench"),
                {"run", "-n", "2", "bench", "put", "get", "put-latency", "atomic-fetch-add",
                 "put-pingpong", "barrier"},
                soak ? 400.0 : 30.0};
  JobItem moe{"moe",
              part_title("moe"),
              {"run", "-n", "2", "moe", "--num-tokens", "64", "--iters", soak ? "200" : "10"},
              soak ? 400.0 : 30.0};
  add_effort(bench, level);
  for (JobItem* item : {&bringup, &bench, &moe})
    add_output(*item, "64M");
  return {bringup, bench, moe};
}

bool had_gpus(const Report& bringup) {
  return std::any_of(bringup.checks.begin(), bringup.checks.end(), [](const CheckRow& row) {
    return row.id == gpu_devices_row && row.status == "pass";
  });
}

JobItem gpu_job(int level) {
  JobItem bench{"bench-gpu",
                part_title("bench-gpu"),
                {"run", "-n", "2", "bench", "put", "get", "put-signal-pingpong", "barrier",
                 "--initiator", "gpu"},
                level >= soak_level ? 400.0 : 30.0};
  add_effort(bench, level);
  add_output(bench, "512M"); // for messages of 64 MiB, and the measurement of the link
  return bench;
}

bool nothing_to_check(const Node& node) {
  return node.gpus.empty() && std::none_of(node.nics.begin(), node.nics.end(),
                                           [](const Nic& nic) { return !nic.rdma || *nic.rdma; });
}

Finding nothing_to_check_finding() {
  return {"nothing-to-check", Severity::warning, "machine",
          "no GPU, no RDMA device: what ran here says only that shmemctl works",
          "if this node has such devices, load their drivers, and check whether lspci lists them"};
}

Report absorb(const JobItem& item, const ChildResult& child, Report& report) {
  Report part;
  try {
    part = report_from_json(parse_json(child.out, item.id), item.id);
  } catch (const Error&) {
    part = Report{};
  }
  // If a job timed out, its finding only reports the signal that run_child() sent.
  if (child.timed_out)
    std::erase_if(part.findings,
                  [](const Finding& finding) { return finding.id == "run-aborted"; });
  for (Finding& finding : part.findings)
    if (finding.id == "run-aborted")
      finding = {"check-" + item.id, finding.severity, item.id, item.title + ": " + finding.message,
                 finding.fix};
  if (failed_silently(child, part))
    part.findings.push_back(failure_of(item, child, part));
  if (!part.phases.empty())
    report.phases = part.phases;
  if (part.measurement)
    report.measurement = part.measurement;
  report.job.pes = std::max(report.job.pes, part.job.pes);
  report.results.insert(report.results.end(), part.results.begin(), part.results.end());
  report.moe.insert(report.moe.end(), part.moe.begin(), part.moe.end());
  report.findings.insert(report.findings.end(), part.findings.begin(), part.findings.end());
  add_row(item.id, item.title, part.findings, summary_of(part), report);
  return part;
}

void add_verdict(const std::string& id, const std::string& title, const Findings& findings,
                 const std::string& good, Report& report) {
  add_row(id, title, findings, good, report);
}

void add_skipped(const std::string& id, const std::string& title, const std::string& reason,
                 Report& report) {
  CheckRow row;
  row.id = id;
  row.title = title;
  row.group = verdict_group;
  row.status = "skipped";
  row.reason = reason;
  report.checks.push_back(row);
}

std::string doctor_summary(const std::vector<CheckRow>& checks) {
  std::size_t all = 0, passed = 0, skipped = 0;
  for (const CheckRow& row : checks) {
    if (row.group == verdict_group)
      continue;
    ++all;
    passed += row.status == "pass" ? 1 : 0;
    skipped += row.status == "skipped" ? 1 : 0;
  }
  return fmt::format("{} of {} checks passed{}", passed, all,
                     skipped > 0 ? fmt::format(", {} skipped", skipped) : "");
}

} // namespace shmemctl
