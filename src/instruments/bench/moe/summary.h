// A summary of a point of `moe` in three lines.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"
#include "src/instruments/bench/moe/point.h"

namespace shmemctl::moe {

/// What was reached, what limits it, and what the user can try.
struct Summary {
  std::string reached, bounded_by, to_try;
};
/// @param rows result of rows_of() for the point
/// @param gigabits whether bandwidths are shown in Gb/s
Summary summary_of(const Point& point, const std::vector<ResultRow>& rows, bool gigabits = false);

/// Three lines for people.
std::string to_text(const Summary& summary, const TextStyle& style);

} // namespace shmemctl::moe
