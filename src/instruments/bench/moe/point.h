// One point of `shmemctl moe`, as it is reported.
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

/// All that PE 0 knows about a point.
struct Point {
  const Setup& setup;
  std::string backend;
  std::string routing; ///< a kind, such as "uniform", or the file's name
  std::int32_t tokens = 0;
  std::vector<MemoryUse> memory;
  const PointResult& result;
  DirectionSettings given = {};                                ///< the requested settings
  DirectionSettings settings = {};                             ///< the settings that calls ran with
  std::vector<KernelLaunch> of_dispatch = {}, of_combine = {}; ///< Backend::launches()
  /// Whether settings were tuned before, so that the first call of this point is not the first of
  /// the run.
  bool was_tuned = false;
  std::vector<Tuned> tuned = {}; ///< the results of tuning
  Links links = {};              ///< the links that rows used
  std::string window = {};       ///< what `total` spans, and by which clock
  RoutingRequest drawn = {}; ///< how the routing was generated; not used for a routing from a file
  int max_delay_us = 0;      ///< as in Effort
  std::optional<std::pair<int, double>> straggler = {};
  std::optional<int> absent = {}; ///< as in Effort
  bool recorded = false;          ///< whether the routing comes from a file
  /// PEs share CPUs (`bench-oversubscribed`). Then ranks wait for the time slices of others, and
  /// nothing is reported as slow except the straggler.
  std::optional<Finding> oversubscribed = {};
  /// Other threads used a PE's CPU for much of the time (`bench-interference`). The consequence is
  /// the same as for `oversubscribed`.
  std::optional<Finding> disturbed = {};
  ByteCount count = ByteCount::own; ///< how ResultRow::counted_GBps counts bytes
  CallStart start = {};             ///< how each timed call starts
};

/// What the wait matrices of an operation show to be slow.
std::vector<WaitVerdict> verdicts_of(const Point& point, const OperationResult& result);

/// The rows of each operation (total time, its parts, its phases, the first call) and of the chain.
std::vector<ResultRow> rows_of(const Point& point);
/// An item of the report's key "moe": routing, memory, traffic, wait matrices and verdicts,
/// settings, and the settings that were tried.
nlohmann::json json_of(const Point& point);
/// Findings about wrong results, masked ranks, slow ranks and links, and rows above their limit.
Findings findings_of(const Point& point);
/// Routing, memory, kernel launches, traffic, links and wait matrices as text for people.
std::string text_of(const Point& point);
/// The wait matrices of text_of() that show something slow; "" if none does.
std::string slow_text_of(const Point& point);

} // namespace shmemctl::moe
