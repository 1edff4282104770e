// The same rows in run after run.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <unordered_map>

#include "reports/compare/measure.h"
#include "reports/html/blocks.h"
#include "reports/html/chart.h"
#include "reports/html/row_series.h"
#include "reports/html/sections.h"
#include "src/base/quantiles.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

/// Which run of all, by time, a row is of.
using RunOrder = std::unordered_map<const ResultRow*, std::size_t>;

/// The runs of all reports by time; fills `order`.
std::vector<RunInfo> runs_by_time(const std::vector<LoadedReport>& reports, RunOrder& order) {
  struct Place {
    RunInfo run;
    std::size_t report = 0, index = 0;
  };
  std::vector<Place> places;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    std::size_t index = 0;
    for (RunInfo& run : runs_of(reports[i].report))
      places.push_back({std::move(run), i, index++});
  }
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return a.run.started_at < b.run.started_at;
  });
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> ordinal;
  std::vector<RunInfo> runs;
  for (Place& place : places) {
    ordinal.emplace(std::pair(place.report, place.index), runs.size());
    runs.push_back(std::move(place.run));
  }
  for (std::size_t i = 0; i < reports.size(); ++i)
    for (const ResultRow& row : reports[i].report.results)
      if (const auto found = ordinal.find({i, run_index(reports[i].report, row.run)});
          found != ordinal.end())
        order.emplace(&row, found->second);
  return runs;
}

struct History {
  const SideRow* row = nullptr;
  std::string unit;
  std::vector<std::pair<double, double>> points; ///< run and median
  double first = 0, last = 0, usual = 0;         ///< usual: the median of all
  double change() const { return last / first - 1; }
  double size() const { return first > 0 && last > 0 ? std::abs(std::log(last / first)) : 0; }
};

std::optional<History> history_of(const SideRow& row, const RunOrder& order) {
  History history;
  history.row = &row;
  std::vector<double> values;
  for (const RunOfRow& run : row.runs) {
    const Measured one = measured({row.key, row.hosts, row.transports, {run}});
    const auto place = order.find(run.rows.front());
    if (!one.value || place == order.end())
      continue;
    if (history.unit.empty())
      history.unit = one.unit;
    if (one.unit == history.unit)
      history.points.emplace_back(static_cast<double>(place->second), *one.value);
  }
  if (history.points.size() < 2)
    return std::nullopt;
  std::sort(history.points.begin(), history.points.end());
  for (const auto& [run, value] : history.points)
    values.push_back(value);
  history.first = values.front();
  history.last = values.back();
  history.usual = median(values);
  return history;
}

/// "11-21 03:33 node7"
std::string run_label(const RunInfo& run, bool several_hosts) {
  const std::string& start = run.started_at;
  const std::string time =
      start.size() >= 16 ? start.substr(5, 5) + " " + start.substr(11, 5) : "?";
  return several_hosts ? time + " " + join(run.hosts, "+") : time;
}

/// A line for each of the rows that moved most, as multiples of what is usual for the row.
json chart_of(const RowGroup& group, std::vector<History> histories,
              const std::vector<std::string>& labels) {
  std::stable_sort(histories.begin(), histories.end(),
                   [](const History& a, const History& b) { return a.size() > b.size(); });
  const std::vector<std::string> varying = varying_parameters(group, "");
  Chart chart;
  chart.title = group.case_name;
  if (histories.size() > most_series)
    chart.title +=
        fmt::format(": the {} rows of {} that moved most", most_series, histories.size());
  chart.x_name = "run";
  chart.x_axis = AxisKind::category;
  chart.x_labels = labels;
  ChartView relative{"multiple of the row's median", {}}, absolute{"", {}};
  bool one_unit = true;
  for (std::size_t i = 0; i < histories.size() && i < most_series; ++i) {
    const History& history = histories[i];
    const std::string name = series_name(*history.row, varying);
    ChartSeries series{name.empty() ? "all" : name, SeriesRole::measured, static_cast<int>(i),
                       history.points};
    one_unit = one_unit && history.unit == histories.front().unit;
    absolute.series.push_back(series);
    for (auto& [run, value] : series.points)
      value /= history.usual;
    relative.series.push_back(std::move(series));
  }
  absolute.name = "median [" + histories.front().unit + "]";
  chart.views.push_back(std::move(relative));
  if (one_unit)
    chart.views.push_back(std::move(absolute));
  return chart.block();
}

} // namespace

json trend_section(const std::vector<LoadedReport>& reports, bool by_host) {
  RunOrder order;
  const std::vector<RunInfo> runs = runs_by_time(reports, order);
  const bool several_hosts = has_several_hosts(reports);
  const Side side = side_of(reports, by_host);
  if (side.n_runs < 2)
    return nullptr;
  std::vector<std::string> labels;
  for (const RunInfo& run : runs)
    labels.push_back(run_label(run, several_hosts));
  TableBlock table("Rows of several runs", {{"case", ColumnKind::code},
                                            {"parameters"},
                                            {"hosts"},
                                            {"runs", ColumnKind::number},
                                            {"first", ColumnKind::number},
                                            {"median", ColumnKind::number},
                                            {"last", ColumnKind::number},
                                            {"unit"},
                                            {"last beside first", ColumnKind::share}});
  json blocks = json::array();
  for (const RowGroup& group : by_case(side)) {
    std::vector<History> histories;
    for (const SideRow* row : group.rows)
      if (auto history = history_of(*row, order))
        histories.push_back(std::move(*history));
    for (const History& history : histories)
      table.add({cell(group.case_name), cell(parameters_text(history.row->first().params)),
                 cell(join(history.row->hosts, ", ")), history.points.size(), history.first,
                 history.usual, history.last, cell(history.unit),
                 cell(std::optional<double>(history.change()))});
    if (histories.empty())
      continue;
    if (json block = chart_of(group, std::move(histories), labels); !block.is_null())
      blocks.push_back(std::move(block));
  }
  if (!table.empty())
    blocks.push_back(table.block());
  return section("trend", "Trend", std::move(blocks));
}

} // namespace shmemctl::html
