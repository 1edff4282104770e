// The charts of a page: rows as series, sweeps, trends.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/compare/compare.h"

namespace shmemctl::html {

enum class SeriesRole { measured, baseline, limit };

struct ChartSeries {
  std::string name;
  SeriesRole role = SeriesRole::measured;
  int colour = 0; ///< index of the colour; a baseline has that of its series
  std::vector<std::pair<double, double>> points;
};

struct ChartView {
  std::string name; ///< name of the y axis: "time [us]"
  std::vector<ChartSeries> series;
};

enum class AxisKind {
  size,    ///< bytes, logarithmic
  log,     ///< any number above 0
  category ///< x is an index into the labels
};

struct Chart {
  std::string title, x_name;
  AxisKind x_axis = AxisKind::log;
  std::vector<std::string> x_labels; ///< x labels of a chart whose x axis has categories
  std::vector<ChartView> views;      ///< those without series are omitted

  /// Points that a logarithmic axis cannot show are omitted; null if nothing is left.
  nlohmann::json block() const;
};

/// More lines in one picture cannot be distinguished.
inline constexpr std::size_t max_series = 12;

/// What can be plotted for a row.
struct Metric {
  std::string name; ///< "time [us]", "bandwidth [GB/s]"
  bool is_bandwidth = false;
  std::optional<double> value;
};
/// All metrics that the row has, in a fixed order: its own median (unless in GB/s or M/s),
/// bandwidth, bandwidth on the wire and by another count, rate.
std::vector<Metric> metrics_of(const SideRow& row);

/// Rows of one case that belong to one chart.
struct RowGroup {
  std::string case_name;
  std::vector<const SideRow*> rows;
};
std::vector<RowGroup> by_case(const Side& side);

/// The parameter with the most distinct numbers above 0 in these rows, at least two; size_bytes and
/// tokens have precedence. "" if there is none.
std::string swept_parameter(const RowGroup& group);

/// Parameters that differ between the rows, sorted, without `but` and those that is_dependent().
std::vector<std::string> varying_parameters(const RowGroup& group, const std::string& but);

/// Those of varying_parameters() that distinguish the lines of a chart over `swept`: without
/// numbers derived from the swept one (the window that a sweep chooses for each size), which would
/// break a line into pieces.
std::vector<std::string> line_parameters(const RowGroup& group, const std::string& swept);

/// "scope=block host n1": what distinguishes this row's line from others; "" if nothing does.
/// @param varying sorted
std::string series_name(const SideRow& row, const std::vector<std::string>& varying);

/// "size_bytes=4K scope=block": all parameters.
std::string parameters_text(const nlohmann::json& params);

} // namespace shmemctl::html
