// Results that are above the limit that they are a share of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"

namespace shmemctl::bench {

/// Sets limit_note where the share is above 1 by more than measuring explains: 5 % where the limit
/// is measured along with it, 2 % where it is a link's rate.
void note_above_limit(ResultRow& row);

/// `bench-above-limit` for rows that have a note, one for all: how many, the one furthest above its
/// limit, and how that can be. An info where the limit is a measurement, a warning where it is a
/// link's rate, which nothing exceeds. @param subject "bench put"
std::optional<Finding> above_limit_finding(const std::string& subject,
                                           const std::vector<ResultRow>& rows);

} // namespace shmemctl::bench
