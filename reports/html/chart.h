// A chart: lines over a common x axis, in one or several views (time, bandwidth, ...).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace shmemctl::html {

enum class SeriesRole { measured, baseline, limit };

struct ChartSeries {
  std::string name;
  SeriesRole role = SeriesRole::measured;
  int colour = 0; ///< a baseline has its series' colour
  std::vector<std::pair<double, double>> points;
};

struct ChartView {
  std::string name; ///< of the y axis: "time [us]"
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
  std::vector<std::string> x_labels; ///< of categories
  std::vector<ChartView> views;      ///< those without series are left out

  /// Points that a logarithmic axis cannot show are left out; null if nothing is left.
  nlohmann::json block() const;
};

/// More lines in one picture than this cannot be told apart.
inline constexpr std::size_t most_series = 12;

} // namespace shmemctl::html
