#include "reports/compare/side.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "src/base/json_line.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// The text of a parameter; 1 and 1.0 are the same.
std::string value_text(const json& value) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::abs(number) < 9e15 && number == std::trunc(number))
      return std::to_string(static_cast<long long>(number));
  }
  return json_line(value);
}

std::string carriers_of(const ResultRow& row) {
  return row.path ? join(row.path->transports, ", ") : "";
}

std::string key_of(const ResultRow& row, const std::vector<std::string>& hosts) {
  std::string key = row.case_name;
  for (const auto& [name, value] : row.params.items())
    if (!is_dependent(name))
      key.append(1, '\0').append(name).append(1, '\0').append(value_text(value));
  for (const std::string& host : hosts)
    key.append(1, '\1').append(host);
  return key;
}

} // namespace

bool is_dependent(const std::string& parameter) {
  return parameter == "batch" || parameter == "declared";
}

HostSets host_sets(const std::vector<LoadedReport>& reports) {
  HostSets sets;
  for (const LoadedReport& loaded : reports)
    for (const RunInfo& run : runs_of(loaded.report))
      sets.insert(run.hosts);
  return sets;
}

bool has_several_hosts(const std::vector<LoadedReport>& reports) {
  return host_sets(reports).size() > 1;
}

bool matches_by_host(const HostSets& base, const HostSets& other) {
  if (other.size() > 1)
    return true;
  if (base.size() < 2)
    return false;
  std::set<std::string> known;
  for (const std::vector<std::string>& hosts : base)
    known.insert(hosts.begin(), hosts.end());
  const std::vector<std::string>& hosts = *other.begin();
  return hosts.empty() || std::any_of(hosts.begin(), hosts.end(), [&](const std::string& host) {
           return known.contains(host);
         });
}

bool matches_by_host(const std::vector<LoadedReport>& base,
                     const std::vector<LoadedReport>& other) {
  return matches_by_host(host_sets(base), host_sets(other));
}

std::set<std::string> row_keys(const Report& report) {
  const std::vector<RunInfo> runs = runs_of(report);
  std::set<std::string> keys;
  for (const ResultRow& row : report.results)
    keys.insert(key_of(row, runs[run_index(report, row.run)].hosts));
  return keys;
}

void CarriersOfRows::learn(const std::vector<LoadedReport>& reports) {
  for (const LoadedReport& loaded : reports)
    for (const ResultRow& row : loaded.report.results)
      if (std::string carriers = carriers_of(row); !carriers.empty())
        known_[key_of(row, {})].insert(std::move(carriers));
}

std::string CarriersOfRows::of(const std::string& key, const ResultRow& row) const {
  const auto known = known_.find(key);
  return known == known_.end() || known->second.size() < 2 ? "" : carriers_of(row);
}

Side side_of(const std::vector<LoadedReport>& reports, bool by_host) {
  CarriersOfRows carriers;
  carriers.learn(reports);
  return side_of(reports, by_host, carriers);
}

Side side_of(const std::vector<LoadedReport>& reports, bool by_host,
             const CarriersOfRows& carriers) {
  Side side;
  for (const LoadedReport& loaded : reports) {
    const std::vector<RunInfo> runs = runs_of(loaded.report);
    // Which run of a row is its newest one; one report's runs come one after the other.
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> place_of_run;
    for (const ResultRow& row : loaded.report.results) {
      const std::size_t run = run_index(loaded.report, row.run);
      const std::vector<std::string> hosts = by_host ? runs[run].hosts : std::vector<std::string>{};
      std::string key = key_of(row, hosts);
      std::string transports = carriers.of(key_of(row, {}), row);
      if (!transports.empty())
        key.append(1, '\2').append(transports);
      const auto [found, is_new] = side.index.emplace(key, side.rows.size());
      if (is_new)
        side.rows.push_back({std::move(key), hosts, std::move(transports), {}});
      SideRow& target = side.rows[found->second];
      const auto [place, first_of_run] =
          place_of_run.emplace(std::make_pair(found->second, run), target.runs.size());
      if (first_of_run)
        target.runs.emplace_back();
      target.runs[place->second].rows.push_back(&row);
    }
    side.n_runs += runs.size();
  }
  return side;
}

} // namespace shmemctl
