// Merges many reports: of the nodes of one run, or of several runs.
#pragma once

#include <vector>

#include "reports/compare/load.h"

namespace shmemctl {

/// One report with the rows, checks, counters and findings of all. Rows, checks and counters have
/// their run, an index into `runs`; the message of a finding begins with host and time. Runs keep
/// the order of the reports, and a merged report's runs stay separate. Each host occurs once;
/// topology, mapping and hot spots are kept if all reports that have one agree, otherwise a finding
/// reports that they do not. The status is complete if every run's is; the exit code is the
/// highest.
Report merge_reports(const std::vector<LoadedReport>& reports);

} // namespace shmemctl
