// Thresholds for results, findings, checks and the loads of NICs.
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

/// The names of metrics, for messages; statistics are listed only in us.
std::vector<std::string> metric_names();
/// "bandwidth_GBps", "p50_us" (any unit of time or rate), "latency_us" (the median), ...
bool is_metric(const std::string& name);
/// The row's value of this metric; empty if the row has none, or has it in another unit.
std::optional<double> metric_of(const ResultRow& row, const std::string& name);

/// What a threshold is about.
enum class ThresholdSubject {
  rows,     ///< CASE: rows of results
  findings, ///< "findings": how many
  checks,   ///< "checks": how many
  ports,    ///< "hotspots": the ports that were watched
  groups    ///< "hotspots" with the metric imbalance: groups of ports that should have equal loads
};

/// CASE[PARAMETER=VALUE,...].METRIC OPERATOR NUMBER, where CASE is also one of the words findings,
/// checks and hotspots; findings[KEY=VALUE,...] OPERATOR NUMBER counts, as checks does.
struct Threshold {
  enum class Operator { at_least, at_most, above, below, equal };

  std::string expression;
  std::string source; ///< "--require", or "limits.txt, line 3"
  ThresholdSubject subject = ThresholdSubject::rows;
  std::string case_pattern; ///< * and ? as in `bench`
  std::vector<std::pair<std::string, std::string>> conditions;
  std::string metric; ///< "bandwidth_GBps", "p50_us", "utilisation"; "" for a count
  Operator comparison = Operator::at_least;
  double limit = 0;
};

/// Throws Error (usage) with the column and what was expected there.
/// @param source the flag or file with the threshold, for messages
/// @param line the line of that file, counted from 1; 0 if it is not a file
Threshold parse_threshold(const std::string& text, const std::string& source, std::size_t line = 0);
/// Parses one threshold per line; empty lines and everything after a # are ignored. Throws Error
/// (usage) with line and column, also for a file without thresholds.
std::vector<Threshold> parse_threshold_file(const std::string& text, const std::string& path);

/// The result of a threshold.
struct ThresholdOutcome {
  Threshold threshold;
  std::size_t rows = 0;            ///< number of rows (or ports, or groups); 1 for a count
  std::vector<std::string> missed; ///< one sentence for each row that violates it
  std::optional<double>
      worst; ///< the value farthest on the wrong side, or closest to the threshold
};

/// Compares the rows of all runs with the threshold. A row that failed or was skipped violates it,
/// and so does a row without the metric, unless CASE is a pattern with * or ?: then such a row is
/// ignored. A port whose load is unknown violates it, too, unless conditions select its device by
/// such a pattern, or select no device. Throws Error (usage) if no row or port is left: a threshold
/// that matches nothing is a mistake, not a pass. Findings and checks are counted over all reports;
/// an id that neither the tool nor a report knows is an error as well.
ThresholdOutcome hold_against(const Threshold& threshold, const std::vector<LoadedReport>& reports);

/// Whether the value satisfies the threshold.
bool keeps_to(const Threshold& threshold, double value);
/// Whether the threshold requires large values.
bool wants_much(const Threshold& threshold);

/// hold_against() for every subject but rows.
ThresholdOutcome hold_section_against(const Threshold& threshold,
                                      const std::vector<LoadedReport>& reports);
/// The keys that conditions of this subject may name; empty for rows, which have any.
std::vector<std::string> condition_keys(ThresholdSubject subject);
/// The values that a key with a fixed set of values can have: "sent" and "received" for
/// "direction"; empty for other keys.
std::vector<std::string> condition_values(const std::string& key);
/// Metrics of ports and of groups: "utilisation", "GBps", "peak_GBps", "imbalance".
std::vector<std::string> port_metric_names();

/// The report's `thresholds`.
nlohmann::json thresholds_json(const std::vector<ThresholdOutcome>& outcomes);
/// A finding of severity error for each threshold that is violated.
Findings threshold_findings(const std::vector<ThresholdOutcome>& outcomes);

} // namespace shmemctl
