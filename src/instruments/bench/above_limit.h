// Results that exceed the limit that they are compared with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"

namespace shmemctl::bench {

/// Sets limit_note if the row's share of its limit exceeds 1 by more than measurement error
/// explains: by 5 % if the limit was measured too, by 2 % if it is a rate.
void note_above_limit(ResultRow& row);

/// Returns one finding `bench-above-limit` for all rows that have a note: how many there are, the
/// row furthest above its limit (of those limited by a link, if any), and how that can be. Warning
/// if one of these limits is a link's rate, which nothing can exceed; info if all are measurements,
/// or rates of GPU memory, which caches can exceed.
/// @param subject "bench put"
std::optional<Finding> above_limit_finding(const std::string& subject,
                                           const std::vector<ResultRow>& rows);

} // namespace shmemctl::bench
