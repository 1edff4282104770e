// The charts of a page: rows as series, sweeps, trends.
#include "reports/html/charts.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <unordered_map>

#include "reports/compare/compare.h"
#include "reports/html/blocks.h"
#include "reports/html/sections.h"
#include "reports/json_view.h"
#include "reports/pair_matrix.h"
#include "reports/table.h"
#include "src/base/statistics.h"
#include "src/base/text.h"
#include "src/base/units.h"

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

namespace {

constexpr const char* bandwidth_name = "bandwidth [GB/s]";
constexpr const char* rate_name = "operations [M/s]";

/// The median over a row's occurrences.
template <class Get>
std::optional<double> median_of(const SideRow& row, Get get) {
  std::vector<double> values;
  for (const RunOfRow& run : row.runs)
    for (const ResultRow* part : run.rows)
      if (const std::optional<double> value = get(*part))
        values.push_back(*value);
  return values.empty() ? std::nullopt : std::optional<double>(median(std::move(values)));
}

std::string value_text(const std::string& name, const json& value) {
  const auto number =
      value.is_number_unsigned() ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
  return number && ends_with(name, "_bytes") ? format_size_bytes(*number)
                                             : view::scalar(value).value_or("?");
}

} // namespace

std::vector<Metric> metrics_of(const SideRow& row) {
  std::vector<Metric> metrics;
  const Measured main = measured(row);
  const bool is_rate = main.unit == "GBps" || main.unit == "Mops";
  if (main.value && !is_rate)
    metrics.push_back(
        {(less_is_better(main.unit).value_or(false) ? "time [" : "value [") + main.unit + "]",
         false, main.value});
  metrics.push_back({bandwidth_name, true,
                     median_of(row, [](const ResultRow& part) { return part.bandwidth_GBps; })});
  metrics.push_back({"on the wire [GB/s]", false,
                     median_of(row, [](const ResultRow& part) { return part.wire_GBps; })});
  metrics.push_back({"by another count [GB/s]", false,
                     median_of(row, [](const ResultRow& part) { return part.counted_GBps; })});
  metrics.push_back(
      {rate_name, false, median_of(row, [](const ResultRow& part) { return part.rate_Mops; })});
  metrics.erase(std::remove_if(metrics.begin(), metrics.end(),
                               [](const Metric& metric) { return !metric.value; }),
                metrics.end());
  return metrics;
}

std::vector<RowGroup> by_case(const Side& side) {
  std::vector<RowGroup> groups;
  std::map<std::string, std::size_t> positions;
  for (const SideRow& row : side.rows) {
    const std::string& name = row.first().case_name;
    const auto [found, is_new] = positions.emplace(name, groups.size());
    if (is_new)
      groups.push_back({name, {}});
    groups[found->second].rows.push_back(&row);
  }
  return groups;
}

std::string swept_parameter(const RowGroup& group) {
  std::map<std::string, std::set<double>> values;
  for (const SideRow* row : group.rows)
    for (const auto& [name, value] : row->first().params.items())
      if (value.is_number() && value.get<double>() > 0 && !is_dependent(name))
        values[name].insert(value.get<double>());
  for (const char* first : {"size_bytes", "tokens"})
    if (values[first].size() >= 2)
      return first;
  std::string best;
  std::size_t most = 1;
  for (const auto& [name, numbers] : values)
    if (numbers.size() > most) {
      most = numbers.size();
      best = name;
    }
  return best;
}

std::vector<std::string> varying_parameters(const RowGroup& group, const std::string& but) {
  // A hostile document may have different parameters in each row, and so very many parameters in
  // all: each occurrence is examined once, not once per row.
  struct Seen {
    const json* value = nullptr;
    std::size_t rows = 0; ///< rows that have the parameter
    bool differs = false;
  };
  std::map<std::string, Seen> seen;
  for (const SideRow* row : group.rows)
    for (const auto& [name, value] : row->first().params.items()) {
      if (name == but || is_dependent(name) || value.is_null())
        continue;
      Seen& parameter = seen[name];
      parameter.differs = parameter.differs || (parameter.rows > 0 && *parameter.value != value);
      parameter.value = &value;
      ++parameter.rows;
    }
  std::vector<std::string> varying;
  for (const auto& [name, parameter] : seen)
    if (parameter.differs || parameter.rows < group.rows.size())
      varying.push_back(name);
  return varying;
}

std::vector<std::string> line_parameters(const RowGroup& group, const std::string& swept) {
  std::vector<std::string> names = varying_parameters(group, swept);
  // Our cases have fewer parameters and rows. Of larger groups, all varying parameters are
  // returned.
  constexpr std::size_t max_parameters = 16, max_rows = 20'000;
  if (names.size() > max_parameters || group.rows.size() > max_rows)
    return names;
  const auto all_numbers = [&group](const std::string& name) {
    return std::all_of(group.rows.begin(), group.rows.end(), [&name](const SideRow* row) {
      return view::member(row->first().params, name.c_str()).is_number();
    });
  };
  const auto one_row_a_point = [&group, &swept](const std::vector<std::string>& lines) {
    std::set<std::pair<std::string, json>> points;
    return std::all_of(group.rows.begin(), group.rows.end(), [&](const SideRow* row) {
      const json& x = view::member(row->first().params, swept.c_str());
      return points.emplace(series_name(*row, lines), x).second;
    });
  };
  for (std::size_t i = 0; i < names.size();) {
    std::vector<std::string> others = names;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (all_numbers(names[i]) && one_row_a_point(others))
      names = std::move(others);
    else
      ++i;
  }
  return names;
}

std::string series_name(const SideRow& row, const std::vector<std::string>& varying) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : row.first().params.items()) // as sorted as `varying` is
    if (!value.is_null() && std::binary_search(varying.begin(), varying.end(), name))
      parts.push_back(name + "=" + value_text(name, value));
  if (!row.hosts.empty())
    parts.push_back("host " + join(row.hosts, "+"));
  return join(parts, " ");
}

std::string parameters_text(const json& params) {
  std::vector<std::string> parts;
  if (params.is_object())
    for (const auto& [name, value] : params.items())
      parts.push_back(name + "=" + value_text(name, value));
  return join(parts, " ");
}

namespace {

/// Charts of one page; a hostile document may have any number of cases.
constexpr std::size_t max_charts = 200;

/// The limit that a row's share is of, in GB/s.
std::optional<double> limit_of(const ResultRow& row) {
  if (!row.bandwidth_GBps || !row.link_fraction || !(*row.link_fraction > 0) || !row.limited_by)
    return std::nullopt;
  return *row.bandwidth_GBps / *row.link_fraction;
}

/// Rows of two or more pairs are shown as a heat map (heat_map.cpp); rows of one pair are an
/// ordinary sweep.
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

/// The path (PEs, transport, NIC) if it is the same for all rows; "" if it differs or is unknown.
std::string common_path(const RowGroup& group) {
  std::set<std::string> paths;
  for (const SideRow* row : group.rows)
    for (const RunOfRow& run : row->runs)
      for (const ResultRow* part : run.rows)
        if (part->status != RowStatus::skip)
          paths.insert(part->path ? to_text(*part->path) : "");
  return paths.size() == 1 ? *paths.begin() : "";
}

/// The main metric of a case, as metrics_of() names it; "" for a time. Only cases about bandwidths
/// and rates have rates, and the names of those about rates say so.
std::string own_metric(const RowGroup& group) {
  const bool has_rate = std::any_of(group.rows.begin(), group.rows.end(), [](const SideRow* row) {
    return row->first().rate_Mops.has_value();
  });
  if (!has_rate)
    return "";
  return ends_with(group.case_name, "-rate") ? rate_name : bandwidth_name;
}

/// Builds the views of the charts of one case, with at most max_series lines each.
class CaseCharts {
public:
  CaseCharts(const RowGroup& group, const Side& baseline)
      : group_(group), baseline_(baseline), x_(swept_parameter(group)), path_(common_path(group)),
        varying_(line_parameters(group, x_)) {}

  /// @param omitted set to true if the case has more charts than that
  json blocks(std::size_t max_blocks, bool& omitted) {
    json out = json::array();
    if (x_.empty())
      return out;
    for (const SideRow* row : group_.rows)
      add(*row);
    const std::string own = own_metric(group_);
    std::stable_partition(metrics_.begin(), metrics_.end(),
                          [&own](const std::string& metric) { return metric == own; });
    for (std::size_t first = 0; first < names_.size(); first += max_series) {
      if (out.size() >= max_blocks) {
        omitted = true;
        break;
      }
      Chart chart;
      chart.title = labelled(group_.case_name, path_);
      if (names_.size() > max_series)
        chart.title += fmt::format(" ({} of {})", first / max_series + 1,
                                   (names_.size() + max_series - 1) / max_series);
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
    for (std::size_t i = first; i < names_.size() && i < first + max_series; ++i) {
      const std::string& name = names_[i];
      const int colour = static_cast<int>(i - first);
      const std::string shown = name.empty() ? "measured" : name;
      if (const auto found = points_.find({metric, name}); found != points_.end())
        view.series.push_back({shown, SeriesRole::measured, colour, found->second});
      if (const auto found = before_.find({metric, name}); found != before_.end())
        view.series.push_back({name.empty() ? "baseline" : "baseline " + name, SeriesRole::baseline,
                               colour, found->second});
      if (metric == bandwidth_name)
        for (auto limit = limits_.lower_bound({name, ""});
             limit != limits_.end() && limit->first.first == name; ++limit)
          limits[limit->first.second].insert(limit->second.begin(), limit->second.end());
    }
    for (const auto& [limited_by, points] : limits)
      if (view.series.size() < 4 * max_series)
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
  /// By name of the line and of the limit: x and the limit at x.
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
  bool omitted = false;
  for (const RowGroup& group : by_case(side)) {
    if (omitted)
      break;
    const RowGroup lines = without_matrices(group);
    if (lines.rows.empty())
      continue;
    for (json& block : CaseCharts(lines, before).blocks(max_charts - blocks.size(), omitted))
      blocks.push_back(std::move(block));
  }
  if (omitted)
    blocks.push_back(note_block("More than " + std::to_string(max_charts) +
                                " charts: the others are left out, the report has their rows."));
  return section("sweeps", "Sweeps", std::move(blocks));
}

namespace {

/// The index of a row's run among all runs, by time.
using RunOrder = std::unordered_map<const ResultRow*, std::size_t>;

/// The runs of all reports by time; fills `order`.
std::vector<RunInfo> runs_by_time(const std::vector<LoadedReport>& reports, RunOrder& order) {
  struct RunPosition {
    RunInfo run;
    std::size_t report = 0, index = 0;
  };
  std::vector<RunPosition> positions;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    std::size_t index = 0;
    for (RunInfo& run : runs_of(reports[i].report))
      positions.push_back({std::move(run), i, index++});
  }
  std::stable_sort(positions.begin(), positions.end(),
                   [](const RunPosition& a, const RunPosition& b) {
                     return a.run.started_at < b.run.started_at;
                   });
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> ordinal;
  std::vector<RunInfo> runs;
  for (RunPosition& position : positions) {
    ordinal.emplace(std::pair(position.report, position.index), runs.size());
    runs.push_back(std::move(position.run));
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
    const auto position = order.find(run.rows.front());
    if (!one.value || position == order.end())
      continue;
    if (history.unit.empty())
      history.unit = one.unit;
    if (one.unit == history.unit)
      history.points.emplace_back(static_cast<double>(position->second), *one.value);
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

/// A line for each of the rows whose first and last run differ most, as multiples of its median.
json chart_of(const RowGroup& group, std::vector<History> histories,
              const std::vector<std::string>& labels) {
  std::stable_sort(histories.begin(), histories.end(),
                   [](const History& a, const History& b) { return a.size() > b.size(); });
  const std::vector<std::string> varying = varying_parameters(group, "");
  Chart chart;
  chart.title = group.case_name;
  if (histories.size() > max_series)
    chart.title += fmt::format(": the {} rows of {} that moved most", max_series, histories.size());
  chart.x_name = "run";
  chart.x_axis = AxisKind::category;
  chart.x_labels = labels;
  ChartView relative{"multiple of the row's median", {}}, absolute{"", {}};
  bool one_unit = true;
  for (std::size_t i = 0; i < histories.size() && i < max_series; ++i) {
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
                                            {"last vs. first", ColumnKind::share}});
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
