// Pairs of PEs that are slower than others of their kind.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"

namespace shmemctl::bench {

/// `bench-slow-pair`, one for each size of `--traffic matrix`: pairs that take more than a quarter
/// longer than the median of the pairs over the same transports, and whose fastest sample is slower
/// than that median, so that a busy machine is no slow pair. If one PE has all of them, it is
/// named.
/// @param subject "bench put"
/// @param rows of one case; those of no matrix are left out
Findings slow_pair_findings(const std::string& subject, const std::vector<ResultRow>& rows);

} // namespace shmemctl::bench
