#include "reports/csv.h"

#include <cmath>
#include <set>

#include "reports/json_view.h"

namespace shmemctl {

namespace {

using nlohmann::json;

constexpr std::size_t most_cells = 20'000'000;

/// A row ends with CR LF, and a cell is quoted where it has to be (RFC 4180).
class CsvTable {
public:
  explicit CsvTable(const std::vector<std::string>& header) { add(header); }

  void add(const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i)
      out_ += (i > 0 ? "," : "") + quoted(cells[i]);
    out_ += "\r\n";
  }
  std::string take() { return std::move(out_); }

private:
  static std::string quoted(const std::string& cell) {
    if (cell.find_first_of(",\"\r\n") == std::string::npos)
      return cell;
    std::string out = "\"";
    for (char c : cell)
      out += c == '"' ? "\"\"" : std::string(1, c);
    return out + "\"";
  }

  std::string out_;
};

/// A number as JSON writes it: the shortest text that reads back the same.
std::string cell(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? json(*value).dump() : "";
}
std::string cell(const json& value) {
  return value.is_string()                          ? value.get<std::string>()
         : value.is_primitive() && !value.is_null() ? value.dump()
                                                    : "";
}

std::string results_csv(const std::vector<ResultRow>& results) {
  std::set<std::string> names;
  for (const ResultRow& row : results)
    if (row.params.is_object())
      for (const auto& [name, value] : row.params.items())
        names.insert(name);
  if (names.size() > most_cells / results.size())
    throw Error(ExitCode::usage, "the results", "write",
                std::to_string(names.size()) + " different parameters in " +
                    std::to_string(results.size()) + " rows make too large a table",
                "use --json");
  std::vector<std::string> header{"case"};
  header.insert(header.end(), names.begin(), names.end());
  for (const char* name :
       {"n", "min", "p50", "p90", "p99", "max", "mean", "stddev", "mad", "unit", "bandwidth_GBps",
        "wire_GBps", "rate_Mops", "link_fraction", "limited_by", "verified", "status", "reason"})
    header.emplace_back(name);
  CsvTable table(header);
  for (const ResultRow& row : results) {
    std::vector<std::string> cells{row.case_name};
    for (const std::string& name : names)
      cells.push_back(cell(view::member(row.params, name.c_str())));
    const Stats stats = row.stats.value_or(Stats{});
    cells.push_back(row.stats ? std::to_string(stats.n) : "");
    for (const auto& value : {stats.min, stats.p50, stats.p90, stats.p99, stats.max, stats.mean,
                              stats.stddev, stats.mad})
      cells.push_back(cell(value));
    cells.push_back(row.unit);
    cells.push_back(cell(row.bandwidth_GBps));
    cells.push_back(cell(row.wire_GBps));
    cells.push_back(cell(row.rate_Mops));
    cells.push_back(cell(row.link_fraction));
    cells.push_back(row.limited_by.value_or(""));
    cells.emplace_back(to_string(row.verified));
    cells.emplace_back(to_string(row.status));
    cells.push_back(row.reason);
    table.add(cells);
  }
  return table.take();
}

std::string checks_csv(const std::vector<CheckRow>& checks) {
  CsvTable table({"id", "group", "title", "status", "reason", "evidence", "fix"});
  for (const CheckRow& check : checks)
    table.add({check.id, check.group, check.title, check.status, check.reason, check.evidence,
               check.fix});
  return table.take();
}

/// The GPU that a PE names, or null.
const json& gpu_of(const json& topology, const json& pe) {
  static const json none;
  const json& gpus = view::list(topology, "gpus");
  const json& index = view::member(pe, "gpu");
  if (!index.is_number_integer() || index.get<std::int64_t>() < 0 ||
      index.get<std::uint64_t>() >= gpus.size())
    return none;
  return gpus[index.get<std::size_t>()];
}

std::string mapping_csv(const json& topology, const json& mapping) {
  CsvTable table(
      {"pe", "gpu", "pci", "numa", "nic", "port", "distance", "used", "chosen_by", "reason"});
  for (const json& pe : view::list(mapping, "pes")) {
    const json& gpu = gpu_of(topology, pe);
    const json& nics = view::list(pe, "nics");
    const double used = view::number(pe, "used").value_or(static_cast<double>(nics.size()));
    const auto add = [&](const json& nic, const std::string& is_used) {
      table.add({cell(view::member(pe, "pe")), cell(view::member(pe, "gpu")),
                 cell(view::member(gpu, "pci")), cell(view::member(gpu, "numa")),
                 cell(view::member(nic, "device")), cell(view::member(nic, "port")),
                 cell(view::member(nic, "distance")), is_used, cell(view::member(pe, "chosen_by")),
                 cell(view::member(pe, "reason"))});
    };
    if (nics.empty())
      add(json(), "");
    for (std::size_t i = 0; i < nics.size(); ++i)
      add(nics[i], static_cast<double>(i) < used ? "true" : "false");
  }
  return table.take();
}

std::string findings_csv(const Findings& findings) {
  CsvTable table({"id", "severity", "subject", "message", "fix"});
  for (const Finding& finding : findings)
    table.add(
        {finding.id, to_string(finding.severity), finding.subject, finding.message, finding.fix});
  return table.take();
}

} // namespace

std::string write_csv(const Report& report) {
  if (!report.results.empty())
    return results_csv(report.results);
  if (!report.checks.empty())
    return checks_csv(report.checks);
  if (report.mapping.is_object())
    return mapping_csv(report.topology, report.mapping);
  return findings_csv(report.findings);
}

} // namespace shmemctl
