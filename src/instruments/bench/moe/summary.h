// What a point of `moe` says in three lines.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"
#include "src/instruments/bench/moe/point.h"

namespace shmemctl::moe {

/// The three answers about a point: what was reached, what bounds it, what to try.
struct Summary {
  std::string reached, bounded_by, to_try;
};
/// @param rows of the point (rows_of())
/// @param gigabits whether bandwidths are in Gb/s
Summary summary_of(const Point& point, const std::vector<ResultRow>& rows, bool gigabits = false);

/// Three lines for people.
std::string to_text(const Summary& summary, const TextStyle& style);

} // namespace shmemctl::moe
