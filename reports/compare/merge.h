// Many reports as one: of the nodes of one run, or of runs in time.
#pragma once

#include <vector>

#include "reports/compare/load.h"

namespace shmemctl {

/// One report with the rows, checks, counters and findings of all. Rows, checks and counters have
/// their run, an index into `runs`; the message of a finding begins with host and time. Runs keep
/// the order of the reports, and a merged report's runs stay apart. Hosts are there once; topology,
/// mapping and hot spots stay if all reports that have one agree, and a finding says so if they do
/// not. The status is complete if every run's is; the exit code is the highest.
Report merge_reports(const std::vector<LoadedReport>& reports);

} // namespace shmemctl
