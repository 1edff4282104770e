// `check`: the node's acceptance test, item by item.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"
#include "reports/verdict.h"
#include "src/base/process.h"
#include "src/instruments/check/parts.h"
#include "src/model/topo/node.h"

namespace shmemctl {

/// A part of `check` that needs several PEs: runs `shmemctl run ...` of this binary and reads the
/// report from its stdout.
struct JobItem {
  std::string id;                     ///< id of its verdict, such as "bringup"
  std::string title;                  ///< what it verifies
  std::vector<std::string> arguments; ///< arguments of shmemctl
  double timeout_s = 10;
};

/// The jobs of check: the bring-up of 4 PEs; then, with 2 PEs, sweeps, and a dispatch and combine.
/// @param level 1 and 2: short sweeps; 3: sweeps of many sizes for half a second each, with longer
/// time limits
std::vector<JobItem> acceptance_jobs(int level = default_level);
/// Sweeps between kernels of 2 PEs, which share the GPU if there is only one.
JobItem gpu_job(int level = default_level);
/// Whether this bring-up report shows that the PEs had GPUs.
bool had_gpus(const Report& bringup);

/// Whether the machine has neither a GPU nor an RDMA device, so that passed checks mean nothing.
bool nothing_to_check(const Node& node);
/// The finding that nothing could be checked.
Finding nothing_to_check_finding();

/// Adds what the job reported (phases, results, measurement, findings) and its verdict to `report`.
/// A job that crashed, hung, verified nothing or wrote an invalid report, without an error finding
/// of its own, gets one: `check-<id>`, with its first error line and fix. Returns the job's report.
Report absorb(const JobItem& item, const ChildResult& child, Report& report);

/// Adds the verdict of a part that ran in this process. `findings` are the findings that it added.
/// @param good text of the verdict if nothing is wrong
void add_verdict(const std::string& id, const std::string& title, const Findings& findings,
                 const std::string& good, Report& report);
/// Adds the verdict of a part that did not run, with the reason.
void add_skipped(const std::string& id, const std::string& title, const std::string& reason,
                 Report& report);
/// A summary of doctor's rows: "25 of 69 checks passed, 44 skipped".
std::string doctor_summary(const std::vector<CheckRow>& checks);

} // namespace shmemctl
