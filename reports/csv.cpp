#include "reports/csv.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "reports/compare/compare.h"
#include "reports/json_view.h"
#include "reports/table.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

constexpr std::size_t max_cells = 20'000'000;

/// Whether a spreadsheet may take the text for a formula. Some treat the full-width forms of =, +,
/// - and @ in the same way as these.
bool begins_like_a_formula(const std::string& text) {
  static constexpr std::string_view signs[] = {"=",      "+",      "-",      "@",
                                               "\uff1d", "\uff0b", "\uff0d", "\uff20"};
  return std::any_of(std::begin(signs), std::end(signs),
                     [&text](std::string_view sign) { return starts_with(text, sign); });
}

/// A cell that spreadsheets and terminals only display. Text that begins like a formula gets an
/// apostrophe in front, which spreadsheets take as a marker of text; numbers are unchanged. Control
/// characters and line ends are removed.
std::string harmless(const std::string& cell) {
  if (cell.empty() || parse_number(cell))
    return cell;
  const std::string text = safe_text(cell);
  return begins_like_a_formula(text) ? "'" + text : text;
}

/// A row ends with CR LF, and a cell is quoted if necessary (RFC 4180).
class CsvTable {
public:
  explicit CsvTable(const std::vector<std::string>& header) { add(header); }

  void add(const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i)
      out_ += (i > 0 ? "," : "") + quoted(harmless(cells[i]));
    out_ += "\r\n";
  }
  std::string take() { return std::move(out_); }

private:
  static std::string quoted(const std::string& cell) {
    // Spreadsheets of some countries split cells at semicolons.
    if (cell.find_first_of(",;\"") == std::string::npos)
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

/// Columns for the parameters of `rows`. Throws if the table would not fit in memory.
template <class Rows, class ParamsOf>
std::set<std::string> parameter_columns(const Rows& rows, const ParamsOf& params_of) {
  std::set<std::string> names;
  for (const auto& row : rows)
    if (const json& params = params_of(row); params.is_object())
      for (const auto& [name, value] : params.items())
        names.insert(name);
  if (!rows.empty() && names.size() > max_cells / rows.size())
    throw Error(ExitCode::usage, "CSV output", "write the results",
                "table too large: " + std::to_string(names.size()) + " parameters in " +
                    std::to_string(rows.size()) + " rows exceed " + std::to_string(max_cells) +
                    " cells",
                "use --json");
  return names;
}

std::string results_csv(const std::vector<ResultRow>& results) {
  const std::set<std::string> names =
      parameter_columns(results, [](const ResultRow& row) -> const json& { return row.params; });
  const bool merged = std::any_of(results.begin(), results.end(),
                                  [](const ResultRow& row) { return row.run.has_value(); });
  std::vector<std::string> header;
  if (merged)
    header.emplace_back("run");
  header.emplace_back("case");
  header.insert(header.end(), names.begin(), names.end());
  for (const char* name : {"n",
                           "min",
                           "p50",
                           "p90",
                           "p99",
                           "max",
                           "mean",
                           "stddev",
                           "mad",
                           "unit",
                           "bandwidth_GBps",
                           "wire_GBps",
                           "rate_Mops",
                           "link_fraction",
                           "limited_by",
                           "verified",
                           "status",
                           "reason",
                           "path",
                           "p999",
                           "algbw_GBps",
                           "busbw_GBps",
                           "counted_GBps"})
    header.emplace_back(name);
  CsvTable table(header);
  for (const ResultRow& row : results) {
    std::vector<std::string> cells;
    if (merged)
      cells.push_back(row.run ? std::to_string(*row.run) : "");
    cells.push_back(row.case_name);
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
    cells.push_back(row.path ? to_text(*row.path) : "");
    for (const auto& value : {stats.p999, row.algbw_GBps, row.busbw_GBps, row.counted_GBps})
      cells.push_back(cell(value));
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

/// A row per port of `hotspots`. A list of PEs is one cell: "0 1".
std::string hotspots_csv(const json& hotspots) {
  const std::vector<std::string> directions{"sent", "received"};
  const std::vector<std::string> figures{"GBps", "bytes", "link_share", "peak_GBps", "GBps_reason"};
  std::vector<std::string> header{"host",   "device",    "port",
                                  "netdev", "link_Gbps", "link_Gbps_reason"};
  for (const std::string& direction : directions)
    for (const std::string& figure : figures)
      header.push_back(direction + "_" + figure);
  for (const char* name : {"direction", "window_s", "hot", "pes", "pes_reason"})
    header.emplace_back(name);
  CsvTable table(header);
  for (const json& port : view::list(hotspots, "ports")) {
    std::vector<std::string> cells;
    for (const char* name : {"host", "device", "port", "netdev", "link_Gbps", "link_Gbps_reason"})
      cells.push_back(cell(view::member(port, name)));
    for (const std::string& direction : directions)
      for (const std::string& figure : figures)
        cells.push_back(cell(view::member(view::member(port, direction.c_str()), figure.c_str())));
    for (const char* name : {"direction", "window_s", "hot"})
      cells.push_back(cell(view::member(port, name)));
    std::vector<std::string> pes;
    for (const json& pe : view::list(port, "pes"))
      pes.push_back(cell(pe));
    cells.push_back(join(pes, " "));
    cells.push_back(cell(view::member(port, "pes_reason")));
    table.add(cells);
  }
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

/// Ids of the warnings and errors about what the topology's source lacks: "" if it is complete.
std::string gaps_of_source(const Findings& findings) {
  static const std::set<std::string> about_source{"topology-incomplete", "nic-names-unknown",
                                                  "mapping-unknown"};
  std::set<std::string> found;
  for (const Finding& finding : findings)
    if (finding.severity != Severity::info && about_source.contains(finding.id))
      found.insert(finding.id);
  return join({found.begin(), found.end()}, " ");
}

std::string mapping_csv(const json& topology, const json& mapping, const std::string& gaps) {
  CsvTable table({"pe", "gpu", "pci", "numa", "nic", "port", "distance", "used", "chosen_by",
                  "reason", "source_findings"});
  for (const json& pe : view::list(mapping, "pes")) {
    const json& gpu = gpu_of(topology, pe);
    const json& nics = view::list(pe, "nics");
    const double used = view::number(pe, "used").value_or(static_cast<double>(nics.size()));
    const auto add = [&](const json& nic, const std::string& is_used) {
      table.add({cell(view::member(pe, "pe")), cell(view::member(pe, "gpu")),
                 cell(view::member(gpu, "pci")), cell(view::member(gpu, "numa")),
                 cell(view::member(nic, "device")), cell(view::member(nic, "port")),
                 cell(view::member(nic, "distance")), is_used, cell(view::member(pe, "chosen_by")),
                 cell(view::member(pe, "reason")), gaps});
    };
    if (nics.empty())
      add(json(), "");
    for (std::size_t i = 0; i < nics.size(); ++i)
      add(nics[i], static_cast<double>(i) < used ? "true" : "false");
  }
  return table.take();
}

std::string comparison_csv(const json& comparison) {
  const json& rows = view::list(comparison, "rows");
  const std::set<std::string> names = parameter_columns(
      rows, [](const json& row) -> const json& { return view::member(row, "params"); });
  const bool by_host = std::any_of(
      rows.begin(), rows.end(), [](const json& row) { return !view::list(row, "hosts").empty(); });
  std::vector<std::string> header{"verdict", "case"};
  header.insert(header.end(), names.begin(), names.end());
  if (by_host)
    header.emplace_back("hosts");
  const std::vector<std::string> numbers{"change", "change_low", "change_high", "p", "p_adjusted"};
  for (const char* name : {"unit", "base", "new"})
    header.emplace_back(name);
  header.insert(header.end(), numbers.begin(), numbers.end());
  header.emplace_back("test");
  header.emplace_back("reason");
  CsvTable table(header);
  for (const json& row : rows) {
    std::vector<std::string> cells{cell(view::member(row, "verdict")),
                                   cell(view::member(row, "case"))};
    for (const std::string& name : names)
      cells.push_back(cell(view::member(view::member(row, "params"), name.c_str())));
    if (by_host)
      cells.push_back(hosts_of_row(row));
    cells.push_back(cell(view::member(row, "unit")));
    for (const char* side : {"base", "new"})
      cells.push_back(cell(view::member(view::member(row, side), "value")));
    for (const std::string& name : numbers)
      cells.push_back(cell(view::member(row, name.c_str())));
    cells.push_back(cell(view::member(row, "test")));
    cells.push_back(cell(view::member(row, "reason")));
    table.add(cells);
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
  if (report.comparison.is_object())
    return comparison_csv(report.comparison);
  if (!report.results.empty())
    return results_csv(report.results);
  if (report.hotspots.is_object())
    return hotspots_csv(report.hotspots);
  if (!report.checks.empty())
    return checks_csv(report.checks);
  if (report.mapping.is_object())
    return mapping_csv(report.topology, report.mapping, gaps_of_source(report.findings));
  return findings_csv(report.findings);
}

} // namespace shmemctl
