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

/// What one run has for a row; a row that occurs twice in a run counts as one.
struct RunOfRow {
  std::vector<const ResultRow*> rows; ///< of the reports, which outlive this
};

/// A tuple of independent variables and its runs.
struct SideRow {
  std::string key; ///< the same on both sides
  std::vector<std::string> hosts;
  std::string transports;     ///< "libfabric", where rows that are alike otherwise went by others
  std::vector<RunOfRow> runs; ///< runs that have it, in the order of the reports
  const ResultRow& first() const { return *runs.front().rows.front(); }
};

struct Side {
  std::size_t n_runs = 0;
  std::vector<SideRow> rows; ///< in order of appearance
  std::map<std::string, std::size_t> index;
};

/// Parameters that say how a row came about, not what was asked for: rows match whatever they are.
bool is_dependent(const std::string& parameter);

/// Which hosts the runs of reports are of: each set once.
using HostSets = std::set<std::vector<std::string>>;
HostSets host_sets(const std::vector<LoadedReport>& reports);

/// Whether runs of different hosts are on this side, so that rows have to be told apart by them.
bool has_several_hosts(const std::vector<LoadedReport>& reports);

/// Whether rows of BASE and NEW match by host too: if runs of different hosts are on a side. Not if
/// all of NEW is of one set of hosts of which BASE knows none: such names change from run to run,
/// as those of pods do, and tell nothing.
bool matches_by_host(const HostSets& base, const HostSets& other);
bool matches_by_host(const std::vector<LoadedReport>& base, const std::vector<LoadedReport>& other);

/// What tells the rows of a report apart, their hosts among it.
std::set<std::string> row_keys(const Report& report);

/// Which transports carried the rows of all sides that are compared: a row by shm is not that of
/// the network. Reports of older versions do not tell; their rows match whatever there is, unless
/// rows of several transports are candidates.
class CarriersOfRows {
public:
  void learn(const std::vector<LoadedReport>& reports);
  /// What tells the row apart from others with this key; "" if nothing has to.
  std::string of(const std::string& key, const ResultRow& row) const;

private:
  std::map<std::string, std::set<std::string>> known_; ///< by key without hosts
};

/// @param carriers has learnt the reports of all sides
Side side_of(const std::vector<LoadedReport>& reports, bool by_host,
             const CarriersOfRows& carriers);
/// Of a side by itself.
Side side_of(const std::vector<LoadedReport>& reports, bool by_host);

/// The numbers of a row on one side.
struct Measured {
  std::string unit;
  std::optional<double> value;          ///< median of samples, or of runs; nothing was measured
  std::vector<double> log_samples;      ///< of all runs, sorted; empty if a run kept none
  std::vector<double> log_runs;         ///< the middle of each run
  std::optional<MeanAndSpread> summary; ///< of a single run without samples
  std::size_t samples = 0;
  bool positive = true; ///< false: there is no ratio, and the logarithms are empty
};

Measured measured(const SideRow& row);

/// Whether less is better: times; whether more is: rates; nothing for other units.
std::optional<bool> less_is_better(const std::string& unit);

/// A change as a logarithm of a ratio, from all tests that the numbers suffice for.
struct Change {
  std::optional<Shift> shift; ///< p is the largest of the tests'
  std::string tests;          ///< "samples and runs"
};
Change change_between(const Measured& base, const Measured& other);

/// Confidence of the intervals.
inline constexpr double interval_confidence = 0.95;

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
