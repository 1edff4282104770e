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

/// A part of `check` that needs several PEs: `shmemctl run ...` of this binary, whose report is
/// read from its stdout.
struct JobItem {
  std::string id;                     ///< id of its verdict: "bringup"
  std::string title;                  ///< what it verifies
  std::vector<std::string> arguments; ///< arguments of shmemctl
  double timeout_s = 10;
};

/// The bring-up of 4 PEs, then sweeps and a dispatch and combine between 2.
/// @param level 1 and 2: short sweeps; 3: sweeps of many sizes for seconds each, and longer limits
std::vector<JobItem> acceptance_jobs(int level = default_level);
/// Sweeps between kernels of 2 PEs, which share a GPU if there is only one.
JobItem gpu_job(int level = default_level);
/// Whether this bring-up report shows that the PEs had GPUs.
bool had_gpus(const Report& bringup);

/// Neither a GPU nor an RDMA device: what passes on such a machine says nothing about it.
bool nothing_to_check(const Node& node);
/// The finding that nothing could be checked.
Finding nothing_to_check_finding();

/// Adds what the job reported to `report` (phases, results, measurement, findings) and its verdict.
/// A job that crashed, hung or wrote an invalid report becomes a finding `check-<id>` of severity
/// error with the last error line and fix of that job. Returns the job's report.
Report absorb(const JobItem& item, const ChildResult& child, Report& report);

/// The verdict of a part that ran in this process: `findings` are those that it added.
/// @param good its line if nothing is wrong
void add_verdict(const std::string& id, const std::string& title, const Findings& findings,
                 const std::string& good, Report& report);
/// The verdict of a part that did not run, and why.
void add_skipped(const std::string& id, const std::string& title, const std::string& reason,
                 Report& report);
/// "25 of 69 checks passed, 44 do not apply": of doctor's rows.
std::string doctor_summary(const std::vector<CheckRow>& checks);

} // namespace shmemctl
