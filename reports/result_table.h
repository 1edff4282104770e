// Result rows as a table of at most 100 columns: what all rows have in common is above it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/report.h"
#include "reports/table.h"

namespace shmemctl {

/// Rows of a report, in its order.
using ResultRows = std::vector<const ResultRow*>;

/// The columns of a table, and the parameters that are above it instead.
class ResultColumns {
public:
  /// For rows that are all known: parameters in which they differ are columns.
  ResultColumns(const ResultRows& rows, const TextStyle& style);
  /// For rows that are printed one by one, as they are measured, of which `row` is the first.
  /// @param varying names of parameters that are columns if the row has them
  ResultColumns(const ResultRow& row, const std::vector<std::string>& varying,
                const TextStyle& style);

  /// "direction uni, pes 2, traffic pair; limit: mlx5_0/1"; "" if there is nothing to say.
  std::string constants() const;
  /// Headers, as Table wants them.
  std::vector<Column> headers() const;
  std::vector<std::string> cells(const ResultRow& row) const;

  /// Whether another row can be printed under these headers without a wrong or missing value.
  bool fits(const ResultRow& row) const;
  /// The minimum width of each column, in columns of the terminal.
  std::vector<int> widths() const;

private:
  void choose_values(const ResultRow& row);
  void leave_out();
  void set_constants(const ResultRow& row);
  std::string unit_of_times() const;
  std::string link_cell(const ResultRow& row) const;
  std::string rate_cell(const std::optional<double>& rate_GBps) const;

  TextStyle style_;
  std::vector<std::string> varying_; ///< parameters with a column
  std::vector<std::pair<std::string, std::string>> constants_;
  std::string unit_;
  std::vector<std::string> limits_; ///< shares are of the first one, unless a cell says "of 2"
  bool one_unit_ = true, case_ = false, run_ = false;
  bool times_ = false, p999_ = false, rates_ = false, bandwidth_ = false, bus_ = false,
       wires_ = false, counted_ = false, lows_ = false, shares_ = false, hides_window_ = false;
};

/// One block per case; cases that have the same parameters share a block. Below it are the reasons
/// for missing values.
std::string result_blocks_text(const ResultRows& rows, const TextStyle& style);

/// The notes below the rows of a case, each printed once: cores used; why a row failed, was skipped
/// or not verified; why there is no share of a limit, or one above 100%. "" if there are none.
std::string result_notes_text(const ResultRows& rows, const TextStyle& style);

/// Notes on the columns, printed once for all tables: which rows of tokens the
/// bandwidths of MoE count, and why there is no p99. "" if there are none.
std::string result_columns_text(const ResultRows& rows, const TextStyle& style);

/// The paths of the rows, one line each; for many pairs one line per combination of transport and
/// NICs.
std::string result_paths_text(const ResultRows& rows);

/// A row's histogram, with a bar for each bin; "" if it has none.
std::string histogram_text(const ResultRow& row, const TextStyle& style);

/// The rows of one case, printed as they are measured.
class LiveResults {
public:
  /// @param varying parameters that differ between rows: "size_bytes", "window"
  LiveResults(std::vector<std::string> varying, const TextStyle& style)
      : varying_(std::move(varying)), style_(style) {}

  /// The row's line, preceded by headers if it is the first row or needs other columns.
  std::string add(const ResultRow& row);
  /// The text below the rows: paths, notes, histograms.
  std::string end() const;

private:
  bool shows_pairs() const;

  std::vector<std::string> varying_;
  TextStyle style_;
  std::vector<ResultRow> rows_;
  std::optional<ResultColumns> columns_;
  std::string path_;
};

} // namespace shmemctl
