// Sweeps as charts with the limit of the link and the baseline.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "reports/html/blocks.h"
#include "reports/html/chart.h"
#include "reports/html/row_series.h"
#include "reports/html/sections.h"
#include "reports/json_view.h"
#include "reports/pair_matrix.h"
#include "reports/table.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

/// Charts of one page; a made-up document may name any number of cases.
constexpr std::size_t most_charts = 200;

/// The limit that a row's share is of, in GB/s.
std::optional<double> limit_of(const ResultRow& row) {
  if (!row.bandwidth_GBps || !row.link_fraction || !(*row.link_fraction > 0) || !row.limited_by)
    return std::nullopt;
  return *row.bandwidth_GBps / *row.link_fraction;
}

/// Rows of two pairs and more are a heat map (pairs.cpp); those of one pair are a sweep like any.
RowGroup without_matrices(RowGroup group) {
  std::set<std::pair<json, json>> pairs;
  for (const SideRow* row : group.rows)
    if (const PairNames* const names = pair_names_of(row->first()))
      pairs.emplace(row->first().params.at(names->source), row->first().params.at(names->target));
  if (pairs.size() > 1)
    std::erase_if(group.rows,
                  [](const SideRow* row) { return pair_names_of(row->first()) != nullptr; });
  return group;
}

/// Who sends to whom over what, if that is the same for all rows: "" if it is not, or not known.
std::string common_path(const RowGroup& group) {
  std::set<std::string> paths;
  for (const SideRow* row : group.rows)
    for (const RunOfRow& run : row->runs)
      for (const ResultRow* part : run.rows)
        if (part->status != RowStatus::skip)
          paths.insert(part->path ? to_text(*part->path) : "");
  return paths.size() == 1 ? *paths.begin() : "";
}

/// Builds the views of the charts of one case: most_series lines each.
class CaseCharts {
public:
  CaseCharts(const RowGroup& group, const Side& baseline)
      : group_(group), baseline_(baseline), x_(swept_parameter(group)), path_(common_path(group)),
        varying_(line_parameters(group, x_)) {}

  json blocks(std::size_t most) {
    json out = json::array();
    if (x_.empty())
      return out;
    for (const SideRow* row : group_.rows)
      add(*row);
    for (std::size_t first = 0; first < names_.size() && out.size() < most; first += most_series) {
      Chart chart;
      chart.title = labelled(group_.case_name, path_);
      if (names_.size() > most_series)
        chart.title += fmt::format(" ({} of {})", first / most_series + 1,
                                   (names_.size() + most_series - 1) / most_series);
      chart.x_name = x_ == "size_bytes" ? "size" : x_;
      chart.x_axis = x_ == "size_bytes" ? AxisKind::size : AxisKind::log;
      for (const std::string& metric : metrics_)
        chart.views.push_back(view_of(metric, first));
      if (json block = chart.block(); !block.is_null())
        out.push_back(std::move(block));
    }
    return out;
  }

private:
  using Points = std::vector<std::pair<double, double>>;

  void add(const SideRow& row) {
    const std::optional<double> x = view::number(row.first().params, x_.c_str());
    if (!x)
      return;
    const std::string name = series_name(row, varying_);
    if (known_names_.insert(name).second)
      names_.push_back(name);
    for (const Metric& metric : metrics_of(row)) {
      if (std::find(metrics_.begin(), metrics_.end(), metric.name) == metrics_.end())
        metrics_.push_back(metric.name);
      points_[{metric.name, name}].emplace_back(*x, *metric.value);
      if (metric.is_bandwidth)
        if (const auto limit = limit_of(row.first()))
          limits_[{name, *row.first().limited_by}][*x] = *limit;
    }
    const auto before = baseline_.index.find(row.key);
    if (before == baseline_.index.end())
      return;
    for (const Metric& metric : metrics_of(baseline_.rows[before->second]))
      before_[{metric.name, name}].emplace_back(*x, *metric.value);
  }

  ChartView view_of(const std::string& metric, std::size_t first) const {
    ChartView view{metric, {}};
    std::map<std::string, std::map<double, double>> limits;
    for (std::size_t i = first; i < names_.size() && i < first + most_series; ++i) {
      const std::string& name = names_[i];
      const int colour = static_cast<int>(i - first);
      const std::string shown = name.empty() ? "measured" : name;
      if (const auto found = points_.find({metric, name}); found != points_.end())
        view.series.push_back({shown, SeriesRole::measured, colour, found->second});
      if (const auto found = before_.find({metric, name}); found != before_.end())
        view.series.push_back({name.empty() ? "baseline" : "baseline " + name, SeriesRole::baseline,
                               colour, found->second});
      if (metric == "bandwidth [GB/s]")
        for (auto limit = limits_.lower_bound({name, ""});
             limit != limits_.end() && limit->first.first == name; ++limit)
          limits[limit->first.second].insert(limit->second.begin(), limit->second.end());
    }
    for (const auto& [limited_by, points] : limits)
      if (view.series.size() < 4 * most_series)
        view.series.push_back(
            {"limit: " + limited_by, SeriesRole::limit, 0, Points(points.begin(), points.end())});
    return view;
  }

  const RowGroup& group_;
  const Side& baseline_;
  std::string x_, path_;
  std::vector<std::string> varying_, names_, metrics_; ///< in order of appearance
  std::set<std::string> known_names_;
  std::map<std::pair<std::string, std::string>, Points> points_, before_; ///< by metric and name
  /// By name of the line and of the limit: x and the limit there.
  std::map<std::pair<std::string, std::string>, std::map<double, double>> limits_;
};

} // namespace

json sweeps_section(const std::vector<LoadedReport>& current,
                    const std::vector<LoadedReport>& baseline) {
  const bool by_host =
      baseline.empty() ? has_several_hosts(current) : matches_by_host(baseline, current);
  CarriersOfRows carriers;
  carriers.learn(current);
  carriers.learn(baseline);
  const Side side = side_of(current, by_host, carriers),
             before = side_of(baseline, by_host, carriers);
  json blocks = json::array();
  for (const RowGroup& group : by_case(side)) {
    if (blocks.size() >= most_charts)
      break;
    const RowGroup lines = without_matrices(group);
    if (lines.rows.empty())
      continue;
    for (json& block : CaseCharts(lines, before).blocks(most_charts - blocks.size()))
      blocks.push_back(std::move(block));
  }
  return section("sweeps", "Sweeps", std::move(blocks));
}

} // namespace shmemctl::html
