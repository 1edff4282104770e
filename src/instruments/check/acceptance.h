// `check`: the node's acceptance test, item by item.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/base/process.h"

namespace shmemctl {

/// A part of `check` that needs several PEs: `shmemctl run ...` of this binary, whose report is
/// read from its stdout.
struct JobItem {
  std::string id;                     ///< id of its verdict: "bringup"
  std::string title;                  ///< what it verifies
  std::vector<std::string> arguments; ///< arguments of shmemctl
  double timeout_s = 10;
};

/// The bring-up of 4 PEs, then short sweeps and a dispatch and combine between 2.
std::vector<JobItem> acceptance_jobs();
/// Short sweeps between kernels of 2 PEs, which share a GPU if there is only one. Empty unless this
/// bring-up report shows that the PEs had GPUs.
std::optional<JobItem> gpu_job_after(const Report& bringup);

/// Adds what the job reported to `report` (phases, results, measurement, findings) and its verdict.
/// A job that crashed, hung or wrote an invalid report becomes a finding `check-<id>` of severity
/// error with the last error line and fix of that job. Returns the job's report.
Report absorb(const JobItem& item, const ChildResult& child, Report& report);

/// The verdict of a part that ran in this process: `findings` are those that it added.
void add_verdict(const std::string& id, const std::string& title, const Findings& findings,
                 Report& report);

/// One line per item and one overall: "[✓] bringup  ...".
inline constexpr const char* verdict_group = "verdict";

} // namespace shmemctl
