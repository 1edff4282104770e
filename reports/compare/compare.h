// What has changed between two sets of reports, and whether that is more than noise.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/compare/load.h"
#include "src/base/finding.h"

namespace shmemctl {

struct CompareOptions {
  double alpha = 0.05;      ///< chance of a false alarm, over all rows together
  double min_effect = 0.05; ///< smaller changes are no change
};

enum class RowVerdict { better, worse, same, unclear, missing, added };
/// "better", ..., and "new" for added.
const char* to_string(RowVerdict verdict);

/// One side of a row.
struct SideValue {
  std::optional<double> value;
  std::size_t samples = 0, runs = 0;
};

struct ComparedRow { // NOLINT(bugprone-exception-escape): moving json throws nothing
  std::string case_name;
  nlohmann::json params;
  std::vector<std::string> hosts; ///< where the reports are of several
  std::string unit;
  RowVerdict verdict = RowVerdict::unclear;
  std::string reason;
  std::optional<SideValue> base, other;
  /// Relative: 0.1 is a tenth more. `change` is that of the two values that are shown, and the
  /// interval holds it.
  std::optional<double> change, change_low, change_high;
  bool one_direction = true; ///< the tests' shift goes the way of `change`
  std::optional<double> p, p_adjusted;
  std::string test; ///< "samples", "runs", "stats", or several
};

/// Something about the machines, tools or options that is not the same.
struct Difference {
  std::string what;
  std::vector<std::string> base, other; ///< empty: not recorded
};

struct ComparedSide {
  std::vector<std::string> files;
  std::size_t runs = 0, rows = 0;
};

struct Comparison {
  CompareOptions options;
  ComparedSide base, other;
  std::vector<Difference> differences;
  std::vector<ComparedRow> rows; ///< in BASE's order, then what is new

  std::size_t count(RowVerdict verdict) const;
};

/// Throws Error (usage) if a side has no rows, or none of them is on the other side.
Comparison compare_reports(const std::vector<LoadedReport>& base,
                           const std::vector<LoadedReport>& other, const CompareOptions& options);

std::vector<Difference> differences_between(const std::vector<LoadedReport>& base,
                                            const std::vector<LoadedReport>& other);

/// `comparison` of the report.
nlohmann::json comparison_json(const Comparison& comparison);
/// The ends of the interval of a row of `comparison.rows`, as changes; nothing if it has none, or
/// one that reaches over a factor of 1000: of so few measurements no number is worth telling.
struct ChangeInterval {
  double low = 0, high = 0;
};
std::optional<ChangeInterval> interval_of_row(const nlohmann::json& row);
/// "size_bytes=4096 traffic=pair": what was asked for, without what the tool chose (is_dependent),
/// so that the same row has the same name in every run.
std::string params_text(const nlohmann::json& params);
/// "n1+n2": the hosts of a row of `comparison.rows`; "" where rows are not told apart by hosts.
std::string hosts_of_row(const nlohmann::json& row);
/// What a row is called, beside its case: its parameters, and its hosts where rows are told apart
/// by them: "size_bytes=4096 on n1". "" if it has neither.
std::string row_name(const ComparedRow& row);
/// The same of a row of `comparison.rows`.
std::string row_name(const nlohmann::json& row);
/// A finding for each case with regressions (error), with missing rows (error, unless they are
/// allowed), and for what differs between the machines (warning).
Findings comparison_findings(const Comparison& comparison, bool allow_missing);

} // namespace shmemctl
