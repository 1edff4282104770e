#include "reports/html/chart.h"

#include <algorithm>
#include <cmath>

#include "reports/table.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

const char* to_string(SeriesRole role) {
  return role == SeriesRole::measured ? "measured"
         : role == SeriesRole::limit  ? "limit"
                                      : "baseline";
}

const char* to_string(AxisKind kind) {
  return kind == AxisKind::size ? "size" : kind == AxisKind::log ? "log" : "category";
}

bool can_be_shown(AxisKind axis, double x, double y) {
  return std::isfinite(x) && std::isfinite(y) && y > 0 && (x > 0 || axis == AxisKind::category);
}

json series_json(const ChartSeries& series, AxisKind axis) {
  std::vector<std::pair<double, double>> sorted;
  for (const auto& [x, y] : series.points)
    if (can_be_shown(axis, x, y))
      sorted.emplace_back(x, y);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  json points = json::array();
  for (const auto& [x, y] : sorted)
    points.push_back({x, y});
  return {{"name", safe_text(series.name)},
          {"role", to_string(series.role)},
          {"colour", series.colour},
          {"points", std::move(points)}};
}

} // namespace

json Chart::block() const {
  json drawn = json::array();
  for (const ChartView& view : views) {
    json lines = json::array();
    for (const ChartSeries& line : view.series)
      if (json one = series_json(line, x_axis); !one["points"].empty())
        lines.push_back(std::move(one));
    if (!lines.empty())
      drawn.push_back({{"name", safe_text(view.name)}, {"series", std::move(lines)}});
  }
  if (drawn.empty())
    return nullptr;
  json labels = json::array();
  for (const std::string& label : x_labels)
    labels.push_back(safe_text(label));
  return {{"type", "chart"},
          {"title", safe_text(title)},
          {"x_name", safe_text(x_name)},
          {"x_axis", to_string(x_axis)},
          {"x_labels", std::move(labels)},
          {"views", std::move(drawn)}};
}

} // namespace shmemctl::html
