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
  std::map<std::string, std::set<json>> values;
  std::set<std::string> names;
  for (const SideRow* row : group.rows)
    for (const auto& [name, value] : row->first().params.items())
      if (name != but && !is_dependent(name))
        names.insert(name);
  for (const SideRow* row : group.rows)
    for (const std::string& name : names)
      values[name].insert(view::member(row->first().params, name.c_str()));
  std::vector<std::string> varying;
  for (const auto& [name, all] : values)
    if (all.size() > 1)
      varying.push_back(name);
  return varying;
}

std::string series_name(const SideRow& row, const std::vector<std::string>& varying) {
  std::vector<std::string> parts;
  for (const std::string& name : varying)
    if (const json& value = view::member(row.first().params, name.c_str()); !value.is_null())
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
