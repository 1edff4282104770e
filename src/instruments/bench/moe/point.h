// One point of `shmemctl moe` as the report and people see it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "reports/report.h"
#include "src/instruments/bench/moe/byte_count.h"
#include "src/instruments/bench/moe/call_start.h"
#include "src/instruments/bench/moe/links.h"
#include "src/instruments/bench/moe/measure.h"
#include "src/instruments/bench/moe/tune.h"

namespace shmemctl::moe {

/// Everything that is known of a point on PE 0.
struct Point {
  const Setup& setup;
  std::string backend;
  std::string routing; ///< "uniform", or the file's name
  std::int32_t tokens = 0;
  std::vector<MemoryUse> memory;
  const PointResult& result;
  DirectionSettings given = {};                                ///< what was asked for
  DirectionSettings settings = {};                             ///< what calls ran with
  std::vector<KernelLaunch> of_dispatch = {}, of_combine = {}; ///< Backend::launches()
  /// Whether settings were tried before, so no call was the first; and how that went.
  bool was_tuned = false;
  std::vector<Tuned> tuned = {};
  Links links = {};          ///< what rows went over
  std::string window = {};   ///< what `total` spans, and by which clock
  RoutingRequest drawn = {}; ///< how the routing was made; of a file nothing
  int max_delay_us = 0;      ///< as in Effort
  std::optional<std::pair<int, double>> straggler = {};
  std::optional<int> absent = {}; ///< as in Effort
  bool recorded = false;          ///< whether a file says the routing
  /// PEs share CPUs (`bench-oversubscribed`): then a rank waits for another's time slice, and none
  /// is called slow but the straggler.
  std::optional<Finding> oversubscribed = {};
  /// Other threads held a PE's CPU for much of the time (`bench-interference`): as for
  /// `oversubscribed`.
  std::optional<Finding> disturbed = {};
  ByteCount count = ByteCount::own; ///< the count whose bytes ResultRow::counted_GBps uses
  CallStart start = {};             ///< how each timed call starts
};

/// Who is slow in an operation.
std::vector<WaitVerdict> verdicts_of(const Point& point, const OperationResult& result);

/// Rows of each operation: its time in all, its parts, the first call, and the chained period.
std::vector<ResultRow> rows_of(const Point& point);
/// An item of the report's key "moe": routing, memory, traffic, wait matrices and their verdicts,
/// settings and what was tried.
nlohmann::json json_of(const Point& point);
/// Findings about wrong results and slow ranks.
Findings findings_of(const Point& point);
/// Memory, traffic and the wait matrices, for people.
std::string text_of(const Point& point);
/// The wait matrices of text_of() that show a slow rank; "" if none does.
std::string slow_text_of(const Point& point);

} // namespace shmemctl::moe
