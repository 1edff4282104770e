// Bandwidths of the same path from the plainest way to move bytes up to MoE: what each step costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "reports/table.h"
#include "src/instruments/bench/launch.h"

namespace shmemctl::bench {

/// The cases that `bench --ladder` measures before MoE calls, the plainest first. A path
/// supports at most one of memcpy and RDMA writes by verbs; the other row is skipped with its
/// reason.
std::vector<std::string> ladder_cases(Initiator initiator);

/// One step: a way to move the same bytes over the same path.
struct Rung {
  std::string name; ///< "limit: mlx5_0:1 on n1, 400 Gb/s", "memcpy", "put", "moe-dispatch"
  double GBps = 0;
};

/// First, if a row's limit is a link (not a memcpy or the call without the proxy), the link's rate;
/// then each row's bandwidth, if it has one, in order: of MoE rows, for the bytes that leave a PE.
/// @param rows rows of one size
std::vector<Rung> rungs_of(const std::vector<ResultRow>& rows);

/// Why RDMA writes by verbs are not among the steps, and which step is the first instead: one
/// sentence. "" if they are among the steps, if memcpy takes their place, or if there are fewer
/// than two steps.
/// @param rows as for rungs_of()
/// @param rungs result of rungs_of()
std::string ladder_note(const std::vector<ResultRow>& rows, const std::vector<Rung>& rungs);

/// A table of bandwidths, each with its share of the step before and of the first step. "" for
/// fewer than two rungs.
std::string ladder_text(const std::vector<Rung>& rungs, const TextStyle& style);

/// Finding `bench-ladder` (info): between which steps most is lost. Nothing for fewer than two
/// rungs.
std::optional<Finding> ladder_finding(const std::vector<Rung>& rungs);

} // namespace shmemctl::bench
