// Reads existing reports, from files and folders.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"

namespace shmemctl {

struct LoadedReport {
  std::string path;
  Report report;
};

/// The reports of all paths, in their order; a folder means its *.json, in natural order. Throws
/// Error (usage): a file that is not a report, a folder without any, a run that occurs twice (it
/// would count as two measurements).
std::vector<LoadedReport> load_reports(const std::vector<std::string>& paths);

/// The runs in a report: all runs of a merged report, otherwise the report's own run.
std::vector<RunInfo> runs_of(const Report& report);
/// What identifies the run of a report; "" if the run has no start time to identify it.
std::string identity_of(const RunInfo& run);
/// The index in runs_of(report) of the run that a row's `run` names; 0 if the row names none, or an
/// invalid one, which load_reports() refuses.
std::size_t run_index(const Report& report, const std::optional<int>& run);

} // namespace shmemctl
