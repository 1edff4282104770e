// Reports that were written before, from files and folders.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"

namespace shmemctl {

struct LoadedReport {
  std::string path;
  Report report;
};

/// The reports of all paths, in their order; a folder stands for its *.json, in natural order.
/// Throws Error (usage): a file that is no report, a folder without any, a run that is there twice
/// (it would count as two measurements).
std::vector<LoadedReport> load_reports(const std::vector<std::string>& paths);

/// The runs of a report: those of a merged one, else itself.
std::vector<RunInfo> runs_of(const Report& report);
/// What two reports of one run have in common; "" if the run has no start by which to tell it.
std::string identity_of(const RunInfo& run);
/// The place in runs_of(report) that a row with this `run` is of; 0 if it is of none, which
/// load_reports() refuses.
std::size_t run_index(const Report& report, const std::optional<int>& run);

} // namespace shmemctl
