// Compares reports row by row.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/compare/load.h"
#include "src/base/finding.h"
#include "src/base/statistics.h"

namespace shmemctl {

/// The data of one run for a row; a row that occurs twice in a run counts as one.
struct RunOfRow {
  std::vector<const ResultRow*> rows; ///< pointers into the reports, which outlive this
};

/// A tuple of independent variables and its runs.
struct SideRow {
  std::string key; ///< the same on both sides
  std::vector<std::string> hosts;
  std::string transports;     ///< "libfabric", if otherwise equal rows used different transports
  std::vector<RunOfRow> runs; ///< runs that have the row, in the order of the reports
  const ResultRow& first() const { return *runs.front().rows.front(); }
};

struct Side {
  std::size_t n_runs = 0;
  std::vector<SideRow> rows; ///< in order of appearance
  std::map<std::string, std::size_t> index;
};

/// True for parameters that describe how a row was measured instead of what was requested: rows
/// match regardless of their values.
bool is_dependent(const std::string& parameter);

/// The hosts of the runs in these reports: each set once.
using HostSets = std::set<std::vector<std::string>>;
HostSets host_sets(const std::vector<LoadedReport>& reports);

/// Whether this side has runs of different hosts, so that rows must be distinguished by host.
bool has_several_hosts(const std::vector<LoadedReport>& reports);

/// Whether rows of BASE and NEW match only if they are of the same hosts. They do if one side has
/// runs of different hosts, unless all of NEW is from one set of hosts, none of which BASE has:
/// such names change from run to run, as those of pods do, and carry no information.
bool matches_by_host(const HostSets& base, const HostSets& other);
bool matches_by_host(const std::vector<LoadedReport>& base, const std::vector<LoadedReport>& other);

/// What distinguishes the rows of a report, including their hosts.
std::set<std::string> row_keys(const Report& report);

/// Which transports carried the rows on all sides of a comparison: a row over shm does not match
/// one over the network. Reports of older versions do not say; their rows match any transport,
/// unless rows of several transports are candidates.
class CarriersOfRows {
public:
  void learn(const std::vector<LoadedReport>& reports);
  /// What distinguishes the row from others with this key; "" if nothing is needed.
  std::string of(const std::string& key, const ResultRow& row) const;

private:
  std::map<std::string, std::set<std::string>> known_; ///< by key without hosts
};

/// @param carriers has read the reports of all sides
Side side_of(const std::vector<LoadedReport>& reports, bool by_host,
             const CarriersOfRows& carriers);
/// The rows of a side that is not compared.
Side side_of(const std::vector<LoadedReport>& reports, bool by_host);

/// The numbers of a row on one side.
struct Measured {
  std::string unit;
  std::optional<double> value;          ///< the median over the runs' medians; empty: not measured
  std::vector<double> log_samples;      ///< logarithms of all samples, sorted; {} if a row has none
  std::vector<double> log_runs;         ///< logarithms of the runs' medians, sorted
  std::optional<MeanAndSpread> summary; ///< a single row's `stats`, from 10 samples on
  std::size_t samples = 0;
  bool positive = true; ///< false: no ratio can be formed, and the logarithms are empty
};

Measured measured(const SideRow& row);

/// True if less is better (times), false if more is (rates); empty for other units.
std::optional<bool> less_is_better(const std::string& unit);

/// A change as the logarithm of a ratio, from all tests for which the numbers suffice.
struct Change {
  std::optional<Shift> shift; ///< of the last test, but p is the maximum of the tests' p-values
  std::string tests;          ///< "samples and runs"
};
Change change_between(const Measured& base, const Measured& other);

/// Confidence level of the intervals.
inline constexpr double interval_confidence = 0.95;

struct CompareOptions {
  double alpha = 0.05;      ///< probability of a false alarm, over all rows together
  double min_effect = 0.05; ///< smaller relative changes (0.05: 5%) count as no change
  /// The largest share of unclear rows, among rows that both sides have, with which a comparison
  /// passes; empty: any share.
  std::optional<double> max_unclear = std::nullopt;
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
  std::vector<std::string> hosts; ///< if rows match by host, else empty
  std::string unit;
  RowVerdict verdict = RowVerdict::unclear;
  std::string reason;
  std::optional<SideValue> base, other;
  /// Relative: 0.1 is 10% more. `change` is that of the two displayed values, and the interval
  /// contains it.
  std::optional<double> change, change_low, change_high;
  bool one_direction = true; ///< the tests' shift has the same sign as `change`
  std::optional<double> p, p_adjusted;
  std::string test; ///< "samples", "runs", "stats", or several
};

/// A difference between the machines, tools or options.
struct Difference {
  std::string what;
  std::vector<std::string> base, other; ///< empty: not recorded
};

struct ComparedSide {
  std::vector<std::string> files;
  std::size_t runs = 0, rows = 0;
  std::size_t disturbed = 0; ///< files whose run other processes disturbed (bench-interference)
};

struct Comparison {
  CompareOptions options;
  ComparedSide base, other;
  std::vector<Difference> differences;
  std::vector<ComparedRow> rows; ///< in BASE's order, then new rows

  std::size_t count(RowVerdict verdict) const;
  /// Rows that both sides have.
  std::size_t compared() const;
};

/// Throws Error (usage) if a side has no rows, or the sides have no row in common.
Comparison compare_reports(const std::vector<LoadedReport>& base,
                           const std::vector<LoadedReport>& other, const CompareOptions& options);

std::vector<Difference> differences_between(const std::vector<LoadedReport>& base,
                                            const std::vector<LoadedReport>& other);

/// The report's `comparison`.
nlohmann::json comparison_json(const Comparison& comparison);
/// The ends of the interval of a row of `comparison.rows`, as changes; empty if the row has no
/// interval, or one with an end beyond a factor of 1000, which carries no information.
struct ChangeInterval {
  double low = 0, high = 0;
};
std::optional<ChangeInterval> interval_of_row(const nlohmann::json& row);
/// How much a comparison decided, and which way: "Nothing is worse; 5 of 40 rows are decided, 35
/// are unclear." @param comparison the report's
std::string verdict_text(const nlohmann::json& comparison);
/// "size_bytes=4096 traffic=pair": the requested parameters, without those that the tool chose
/// (is_dependent), so that a row has the same name in every run.
std::string params_text(const nlohmann::json& params);
/// "n1+n2": the hosts of a row of `comparison.rows`; "" if rows are not distinguished by host.
std::string hosts_of_row(const nlohmann::json& row);
/// A row's name within its case: its parameters, and its hosts if rows are distinguished by them:
/// "size_bytes=4096 on n1". "" if it has neither.
std::string row_name(const ComparedRow& row);
/// The name of a row of `comparison.rows`.
std::string row_name(const nlohmann::json& row);
/// A finding for each case with regressions (error) or missing rows (error, or info if allowed),
/// for differences between the machines and for disturbed runs (warnings), and for unclear rows: an
/// error if they are more than `max_unclear`, a warning if that is not set and most rows are.
Findings comparison_findings(const Comparison& comparison, bool allow_missing);

} // namespace shmemctl
