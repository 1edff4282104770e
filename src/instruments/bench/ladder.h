// One path from the plainest way to move bytes up to MoE: what each step costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "reports/table.h"
#include "src/instruments/bench/launch.h"

namespace shmemctl::bench {

/// The cases that `bench --ladder` measures, from below, before a dispatch of MoE. Of memcpy and
/// RDMA writes by verbs the path has one at most: the other row is skipped, with its reason.
std::vector<std::string> ladder_cases(Initiator initiator);

/// One step: a way to move the same bytes over the same path.
struct Rung {
  std::string name; ///< "400 Gb/s link", "memcpy", "verbs-write", "put", "moe-dispatch"
  double GBps = 0;
};

/// From below: the rate of the link where one bounds the path and memory is not mapped, then the
/// rows with a bandwidth in the order of `rows`. Of MoE it is what leaves a PE.
/// @param rows of one size
std::vector<Rung> rungs_of(const std::vector<ResultRow>& rows);

/// Why RDMA writes by verbs are not among the steps, and what the first step is then: one sentence.
/// "" where they are, where memcpy stands in their place, and for less than two steps.
/// @param rows  as for rungs_of()
/// @param rungs what that made of them
std::string ladder_note(const std::vector<ResultRow>& rows, const std::vector<Rung>& rungs);

/// A table: bandwidths, and what share of the step below each one reaches. "" for less than two.
std::string ladder_text(const std::vector<Rung>& rungs, const TextStyle& style);

/// `bench-ladder`, an info: where most is lost. Nothing for less than two rungs.
std::optional<Finding> ladder_finding(const std::vector<Rung>& rungs);

} // namespace shmemctl::bench
