// Rows of results as lines: which parameter runs along x, and what tells the lines apart.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/compare/side.h"

namespace shmemctl::html {

/// What can be drawn of a row.
struct Metric {
  std::string name; ///< "time [us]", "bandwidth [GB/s]"
  bool is_bandwidth = false;
  std::optional<double> value;
};
/// In a fixed order: the row's own statistics, bandwidth, bandwidth on the wire, rate.
std::vector<Metric> metrics_of(const SideRow& row);

/// Rows of one case that belong into one chart.
struct RowGroup {
  std::string case_name;
  std::vector<const SideRow*> rows;
};
std::vector<RowGroup> by_case(const Side& side);

/// The parameter that takes the most numbers above 0 in these rows, at least two; size_bytes and
/// tokens come first. "" if there is none.
std::string swept_parameter(const RowGroup& group);

/// Parameters that are not the same in all rows, sorted, without `but` and those that follow from
/// others.
std::vector<std::string> varying_parameters(const RowGroup& group, const std::string& but);

/// Those of them that tell the lines of a chart over `swept` apart: without numbers that follow
/// from the swept one (the window that a sweep chooses for each size), which would tear a line into
/// pieces.
std::vector<std::string> line_parameters(const RowGroup& group, const std::string& swept);

/// "scope=block host n1": what tells this row's line from others; "" if nothing does.
/// @param varying sorted
std::string series_name(const SideRow& row, const std::vector<std::string>& varying);

/// "size_bytes=4K scope=block": all parameters.
std::string parameters_text(const nlohmann::json& params);

} // namespace shmemctl::html
