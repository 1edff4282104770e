// Merges many reports: of the nodes of one run, or of several runs.
#pragma once

#include <string>
#include <vector>

#include "reports/compare/load.h"

namespace shmemctl {

/// One report with the rows, checks, counters and findings of all. Rows, checks and counters refer
/// to their run by an index into `runs`; the message of a finding begins with host and time. Runs
/// keep the order of the reports, and a merged report's runs stay separate. Each host occurs once.
/// Topology, mapping, simulation, logs and hot spots are kept if all reports that have one agree;
/// hot spots of different hosts are joined. Else a finding says so, and only topology and mapping
/// stay, with each run. The status is complete if every run's is; the exit code is the highest.
Report merge_reports(const std::vector<LoadedReport>& reports);

/// The prefix of a run's findings in a merged report: "node7 at 2026-...: ".
std::string prefix_of(const RunInfo& run);

} // namespace shmemctl
