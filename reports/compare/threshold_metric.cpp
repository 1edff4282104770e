#include "reports/compare/threshold_metric.h"

#include <utility>

#include "reports/compare/measure.h"

namespace shmemctl {

namespace {

using RowNumber = std::optional<double> ResultRow::*;
using StatsNumber = std::optional<double> Stats::*;

constexpr std::pair<const char*, RowNumber> row_numbers[] = {
    {"bandwidth_GBps", &ResultRow::bandwidth_GBps},
    {"wire_GBps", &ResultRow::wire_GBps},
    {"rate_Mops", &ResultRow::rate_Mops},
    {"link_fraction", &ResultRow::link_fraction}};

constexpr std::pair<const char*, StatsNumber> stats_numbers[] = {
    {"latency", &Stats::p50}, {"min", &Stats::min},       {"p50", &Stats::p50},
    {"p90", &Stats::p90},     {"p99", &Stats::p99},       {"max", &Stats::max},
    {"mean", &Stats::mean},   {"stddev", &Stats::stddev}, {"mad", &Stats::mad}};

/// "p50_us" -> p50 and "us".
std::optional<std::pair<StatsNumber, std::string>> statistic(const std::string& name) {
  const std::size_t end = name.rfind('_');
  if (end == std::string::npos || !less_is_better(name.substr(end + 1)))
    return std::nullopt;
  for (const auto& [word, number] : stats_numbers)
    if (name.compare(0, end, word) == 0)
      return std::make_pair(number, name.substr(end + 1));
  return std::nullopt;
}

} // namespace

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const auto& [name, number] : row_numbers)
    names.emplace_back(name);
  for (const auto& [name, number] : stats_numbers)
    names.push_back(std::string(name) + "_us");
  return names;
}

bool is_metric(const std::string& name) {
  for (const auto& [word, number] : row_numbers)
    if (name == word)
      return true;
  return statistic(name).has_value();
}

std::optional<double> metric_of(const ResultRow& row, const std::string& name) {
  for (const auto& [word, number] : row_numbers)
    if (name == word)
      return row.*number;
  const auto found = statistic(name);
  if (!found || !row.stats || row.unit != found->second)
    return std::nullopt;
  return (*row.stats).*(found->first);
}

} // namespace shmemctl
