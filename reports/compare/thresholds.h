// Thresholds for results.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/compare/load.h"
#include "reports/report.h"
#include "src/base/finding.h"

namespace shmemctl {

/// Names to choose from, for messages; of the statistics only those in us.
std::vector<std::string> metric_names();
/// "bandwidth_GBps", "p50_us" (any unit of time or rate), "latency_us" (the median), ...
bool is_metric(const std::string& name);
/// The row's number; empty if the row has none, or has it in another unit.
std::optional<double> metric_of(const ResultRow& row, const std::string& name);

/// CASE[PARAMETER=VALUE,...].METRIC OPERATOR NUMBER
struct Threshold {
  enum class Operator { at_least, at_most, above, below };

  std::string expression;
  std::string source;       ///< "--require", or "limits.txt, line 3"
  std::string case_pattern; ///< * and ? as in `bench`
  std::vector<std::pair<std::string, std::string>> conditions;
  std::string metric; ///< "bandwidth_GBps", "p50_us"
  Operator comparison = Operator::at_least;
  double limit = 0;
};

/// Throws Error (usage) with the column and what was expected there.
/// @param source where it is written, for messages; `line` from 1, 0 if it is not in a file
Threshold parse_threshold(const std::string& text, const std::string& source, std::size_t line = 0);
/// One per line; empty lines and everything after a # are ignored. Throws Error (usage) with line
/// and column, also for a file without thresholds.
std::vector<Threshold> parse_threshold_file(const std::string& text, const std::string& path);

/// The result of a threshold.
struct ThresholdOutcome {
  Threshold threshold;
  std::size_t rows = 0;
  std::vector<std::string> missed; ///< one sentence for each row that violates it
  std::optional<double>
      worst; ///< the value farthest on the wrong side, or closest to the threshold
};

/// Every run's row counts. A row that failed or was skipped violates the threshold, and so does one
/// without the number; but a pattern with * or ? ignores rows that have no such number. Throws
/// Error (usage) if no row is left: a threshold that matches nothing is a mistake, not a pass.
ThresholdOutcome hold_against(const Threshold& threshold, const std::vector<LoadedReport>& reports);

/// The report's `thresholds`.
nlohmann::json thresholds_json(const std::vector<ThresholdOutcome>& outcomes);
/// An error for each threshold that rows violate.
Findings threshold_findings(const std::vector<ThresholdOutcome>& outcomes);

} // namespace shmemctl
