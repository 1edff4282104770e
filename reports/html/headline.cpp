#include "reports/html/headline.h"

#include <algorithm>

#include "reports/html/charts.h"
#include "reports/html/findings.h"
#include "reports/simulation_words.h"
#include "reports/table.h"
#include "reports/verdict.h"
#include "src/base/finding.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

struct Counts {
  std::size_t errors = 0, warnings = 0, unfinished = 0, failed_rows = 0;
  bool bad = false;               ///< a run's exit code was not 0
  const Shown* nothing = nullptr; ///< a check that had nothing to check

  std::string text() const {
    std::vector<std::string> words;
    if (unfinished > 0)
      words.push_back(counted(unfinished, "run") + " did not complete");
    if (errors > 0)
      words.push_back(counted(errors, "error"));
    if (warnings > 0)
      words.push_back(counted(warnings, "warning"));
    if (failed_rows > 0)
      words.push_back(counted(failed_rows, "row") + " failed");
    return join(words, ", ");
  }
};

Counts counts_of(const std::vector<Shown>& shown, const Findings& compared) {
  Counts counts;
  const auto count = [&counts](const Findings& findings) {
    for (const Finding& finding : findings) {
      counts.errors += finding.severity == Severity::error;
      counts.warnings += finding.severity == Severity::warning;
    }
  };
  count(compared);
  for (const Shown& one : shown) {
    const Report& report = one.report();
    count(report.findings);
    counts.unfinished += report.status != ReportStatus::complete;
    if (const auto verdict = verdict_of(report); verdict && verdict->kind == Verdict::Kind::nothing)
      counts.nothing = &one;
    else
      counts.bad = counts.bad || report.exit_code != ExitCode::ok;
    counts.failed_rows += static_cast<std::size_t>(
        std::count_if(report.results.begin(), report.results.end(),
                      [](const ResultRow& row) { return row.status == RowStatus::fail; }));
  }
  return counts;
}

/// "mlx5_0/1 (nic-hotspot)", "node7 mlx5_3:1, node9 mlx5_0:1 and 4 more (link-flapping)".
std::string culprit_text(const FindingGroup& group) {
  constexpr std::size_t max_subjects = 2;
  const std::string subjects = listed(group.subjects(), max_subjects);
  return subjects.empty() ? group.first().id : subjects + " (" + group.first().id + ")";
}

/// The lowest --fail-on of the runs that failed by it; error if none did.
Severity least_that_failed(const std::vector<Shown>& shown) {
  Severity least = Severity::error;
  for (const Shown& one : shown)
    if (has_finding(one.report().findings, one.report().fail_on))
      least = std::min(least, one.report().fail_on);
  return least;
}

/// "put size_bytes=4K"; "" if no row failed.
std::string first_failed_row(const std::vector<Shown>& shown) {
  for (const Shown& one : shown)
    for (const ResultRow& row : one.report().results)
      if (row.status == RowStatus::fail)
        return labelled(one.label, row.case_name + " " + parameters_text(row.params));
  return "";
}

/// "the run ended with exit code 3"; "" if no run ended badly.
std::string bad_end(const std::vector<Shown>& shown) {
  for (const Shown& one : shown) {
    const Report& report = one.report();
    if (report.status != ReportStatus::complete)
      return labelled(one.label, "the run did not complete");
    if (report.exit_code != ExitCode::ok)
      return labelled(one.label, "the run ended with exit code " +
                                     std::to_string(static_cast<int>(report.exit_code)));
  }
  return "";
}

} // namespace

json headline(const std::vector<Shown>& shown, const Findings& compared) {
  const Counts counts = counts_of(shown, compared);
  const std::vector<FindingGroup> groups = grouped_findings(shown, compared);
  const Severity least = least_that_failed(shown);
  const FindingGroup* const worst =
      !groups.empty() && groups.front().first().severity >= std::min(least, Severity::warning)
          ? &groups.front()
          : nullptr;
  const bool has_culprit = worst != nullptr && worst->first().severity >= least;
  const bool fails = has_culprit || counts.bad || counts.unfinished > 0 || counts.failed_rows > 0;
  std::string text = fails                 ? "Something is wrong"
                     : counts.warnings > 0 ? "Works, with warnings"
                                           : "All well";
  std::string detail;
  if (!fails && counts.nothing != nullptr) {
    text = labelled(counts.nothing->label, "Nothing to check: no GPU, no RDMA device");
  } else if (worst != nullptr && has_culprit == fails) {
    text += ": " + culprit_text(*worst);
    detail = worst->first().message;
    std::vector<std::string> others; // ids of the same severity
    for (const FindingGroup& group : groups)
      if (&group != worst && group.first().severity == worst->first().severity)
        others.push_back(group.first().id);
    constexpr std::size_t max_ids = 3;
    if (!others.empty())
      text += "; also " + listed(others, max_ids);
  } else if (fails) {
    const std::string row = first_failed_row(shown);
    text += ": " + (row.empty() ? bad_end(shown) : row + " failed");
  }
  if (worst == nullptr && !fails)
    for (const Shown& one : shown)
      if (detail.empty())
        detail = simulation::verdict_text(one.report().simulation);
  return {{"level", fails                 ? "fail"
                    : counts.warnings > 0 ? "warning"
                                          : "pass"},
          {"text", safe_text(text + ".")},
          {"detail", safe_text(detail)},
          {"counts", counts.text()}};
}

} // namespace shmemctl::html
