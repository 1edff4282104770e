// Pairs of PEs that are slower than others of their kind.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"

namespace shmemctl::bench {

/// Returns a `bench-slow-pair` for each size of `--traffic matrix` and kind of path that has slow
/// pairs among at least six. A pair is slow if it takes over a quarter longer than the median of
/// its kind, and if even its fastest sample is slower than that median, so that a busy machine
/// makes no pair slow. If several are slow and one PE is in all of them, the finding names it.
/// @param subject "bench put"
/// @param rows rows of one case; those that are not of a matrix are ignored
Findings slow_pair_findings(const std::string& subject, const std::vector<ResultRow>& rows);

} // namespace shmemctl::bench
