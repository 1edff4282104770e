#include "reports/html/row_series.h"

#include <algorithm>
#include <set>

#include "reports/compare/measure.h"
#include "reports/json_view.h"
#include "src/base/quantiles.h"
#include "src/base/text.h"
#include "src/base/units.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

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
  metrics.push_back({"bandwidth [GB/s]", true,
                     median_of(row, [](const ResultRow& part) { return part.bandwidth_GBps; })});
  metrics.push_back({"on the wire [GB/s]", false,
                     median_of(row, [](const ResultRow& part) { return part.wire_GBps; })});
  metrics.push_back({"operations [M/s]", false,
                     median_of(row, [](const ResultRow& part) { return part.rate_Mops; })});
  metrics.erase(std::remove_if(metrics.begin(), metrics.end(),
                               [](const Metric& metric) { return !metric.value; }),
                metrics.end());
  return metrics;
}

std::vector<RowGroup> by_case(const Side& side) {
  std::vector<RowGroup> groups;
  std::map<std::string, std::size_t> places;
  for (const SideRow& row : side.rows) {
    const std::string& name = row.first().case_name;
    const auto [found, is_new] = places.emplace(name, groups.size());
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
  // A made-up document may name parameters of its own in each row, so that there are as many as
  // rows times some: each is looked at once, and not in every row.
  struct Seen {
    const json* value = nullptr;
    std::size_t rows = 0; ///< that have it
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
  // No case of ours has more.
  constexpr std::size_t most_parameters = 16, most_rows = 20'000;
  if (names.size() > most_parameters || group.rows.size() > most_rows)
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

} // namespace shmemctl::html
