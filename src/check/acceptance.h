// `check`: the node's acceptance test, item by item.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/base/process.h"

namespace shmemctl {

/// A part of `check` that needs several PEs: `shmemctl run ...` of this very program, whose report
/// comes back on its stdout.
struct JobItem {
  std::string id;                     ///< of its verdict: "bringup"
  std::string title;                  ///< what it proves
  std::vector<std::string> arguments; ///< behind "shmemctl"
  double timeout_s = 10;
};

/// The bring-up of 4 PEs, then short sweeps and a dispatch and combine between 2.
std::vector<JobItem> acceptance_jobs();
/// Short sweeps between kernels of 2 PEs, which share a GPU if there is one only: for a node where
/// this report, of its bring-up, shows that PEs had GPUs. Else nothing.
std::optional<JobItem> gpu_job_after(const Report& bringup);

/// Adds what the job reported to `report` (phases, results, measurement, findings) and its verdict.
/// A job that died, hung or wrote nonsense is a finding `check-<id>` of severity error, with its
/// own last error line and fix. Returns the job's report.
Report absorb(const JobItem& item, const ChildResult& child, Report& report);

/// The verdict of a part that was done in this process: `findings` are those that it added.
void add_verdict(const std::string& id, const std::string& title, const Findings& findings,
                 Report& report);

/// One line per item and one overall: "[✓] bringup  ...".
inline constexpr const char* verdict_group = "verdict";

} // namespace shmemctl
