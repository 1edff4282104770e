// Results that exceed the limit that they are compared with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"

namespace shmemctl::bench {

/// Sets limit_note if the row's share of its limit exceeds 1 by more than measurement error
/// explains: by 5 % if the limit was measured too, by 2 % if it follows from the node model.
void note_above_limit(ResultRow& row);

/// Returns one finding `bench-above-limit` for all rows that have a note: how many there are, the
/// row furthest above its limit (of those whose limit was not measured, if any), and how that can
/// be. Info if all these limits are measurements; warning if one is a rate of the node model.
/// @param subject "bench put"
std::optional<Finding> above_limit_finding(const std::string& subject,
                                           const std::vector<ResultRow>& rows);

} // namespace shmemctl::bench
