// Pairs of PEs that are slower than others of their kind.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"

namespace shmemctl::bench {

/// Returns one `bench-slow-pair` for each size of `--traffic matrix` and kind of path that has slow
/// pairs. A pair is slow if it takes more than a quarter longer than the median of the pairs over
/// the same transports, and if even its fastest sample is slower than that median, so that a busy
/// machine does not make a pair slow. If one PE is part of all slow pairs, the finding names it.
/// @param subject "bench put"
/// @param rows rows of one case; those that are not of a matrix are ignored
Findings slow_pair_findings(const std::string& subject, const std::vector<ResultRow>& rows);

} // namespace shmemctl::bench
