// Findings, comparisons and results as Markdown.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

#include "reports/annotate/annotate.h"
#include "reports/compare/compare.h"
#include "reports/json_view.h"
#include "reports/port_names.h"
#include "reports/table.h"
#include "src/base/text.h"
#include "src/base/units.h"

namespace shmemctl::annotate {

namespace {

using nlohmann::json;

/// GitHub refuses a step's summary beyond 1 MiB entirely.
constexpr std::size_t max_bytes = 900'000;
constexpr std::size_t max_lines = 50;
/// Maximum number of characters of a cell.
constexpr std::size_t longest_cell = 500;

bool is_alphanumeric(const std::string& text, std::size_t at) {
  if (at >= text.size())
    return false;
  const char c = text[at];
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/// Whether a colon begins ":name:", which GitHub and GitLab replace by a picture, or "://".
bool begins_name(const std::string& text, std::size_t colon) {
  std::size_t end = colon + 1;
  if (text.compare(end, 2, "//") == 0)
    return true;
  while (is_alphanumeric(text, end) ||
         (end < text.size() && (text[end] == '_' || text[end] == '+' || text[end] == '-')))
    ++end;
  return end > colon + 1 && end < text.size() && text[end] == ':';
}

/// Whether CommonMark, GitHub and GitLab print this character as it is at this position. Considers
/// the neighbours, so that fewer characters are escaped and the text stays readable.
bool is_plain(const std::string& text, std::size_t at) {
  switch (const char c = text[at]) {
  case '_': // emphasis begins and ends at the edge of a word
    return is_alphanumeric(text, at - 1) && is_alphanumeric(text, at + 1);
  case ':':
    return !begins_name(text, at);
  case '.': // www.host becomes a link
    return at < 3 || lower(text.substr(at - 3, 3)) != "www";
  default:
    return static_cast<unsigned char>(c) >= 0x80 || is_alphanumeric(text, at) ||
           std::string_view(" -,/=%+()\"';?").find(c) != std::string_view::npos;
  }
}

/// Text without markup: a character that could be markup, HTML or the start of a link at its
/// position is written as a character reference, which CommonMark never interprets as structure.
std::string text(const std::string& words) {
  std::string safe = safe_text(words);
  if (safe.size() > longest_cell) {
    std::size_t end = longest_cell;
    while (end > 0 && (static_cast<unsigned char>(safe[end]) & 0xc0) == 0x80)
      --end;
    safe = safe.substr(0, end) + "...";
  }
  std::string out;
  for (std::size_t at = 0; at < safe.size(); ++at)
    out += is_plain(safe, at)
               ? std::string(1, safe[at])
               : fmt::format("&#{};", static_cast<int>(static_cast<unsigned char>(safe[at])));
  return out;
}

std::string code(const std::string& words) {
  return words.empty() ? "" : "<code>" + text(words) + "</code>";
}

class Page {
public:
  void line(const std::string& markup) { out_ += markup + "\n"; }

  /// Rows of a table while there is room; the omitted ones are counted.
  void table(const std::vector<std::string>& header,
             const std::vector<std::vector<std::string>>& rows, const std::string& what) {
    if (rows.empty())
      return;
    row(header);
    row(std::vector<std::string>(header.size(), "---"));
    std::size_t written = 0;
    for (; written < rows.size() && written < max_lines && out_.size() < max_bytes; ++written)
      row(rows[written]);
    if (written < rows.size())
      out_ += "\nand " + counted(rows.size() - written, "more " + what) + "\n";
    out_ += "\n";
  }
  /// Lines that begin with "- ".
  void list(const std::string& lines) {
    if (!lines.empty() && !full())
      out_ += lines + "\n";
  }
  bool full() const { return out_.size() >= max_bytes; }
  std::string take() { return std::move(out_); }

private:
  void row(const std::vector<std::string>& cells) { out_ += "| " + join(cells, " | ") + " |\n"; }

  std::string out_;
};

/// "shmemctl check", "shmemctl report diff": the command without its arguments.
std::string subcommand_of(const Report& report) {
  std::string words = "shmemctl";
  for (std::size_t i = 1; i < report.command.size() && i < 3; ++i) {
    const std::string& word = report.command[i];
    if (i == 2 && report.command[1] != "report")
      break;
    if (!word.empty() && word[0] != '-')
      words += " " + word;
  }
  return words;
}

std::string hosts_of(const Report& report) {
  std::vector<std::string> names;
  for (const RunInfo& run : runs_of(report))
    names.insert(names.end(), run.hosts.begin(), run.hosts.end());
  if (names.empty())
    return "";
  return " on " + (names.size() > 3 ? counted(names.size(), "host") : join(names, ", "));
}

std::string verdict_of(const Report& report, const std::vector<Remark>& remarks) {
  std::map<Severity, std::size_t> counts;
  for (const Remark& remark : remarks)
    ++counts[remark.severity];
  const std::string found =
      counts[Severity::error] > 0 ? counted(counts[Severity::error], "error") : "no error";
  const std::string warned =
      counts[Severity::warning] > 0 ? ", " + counted(counts[Severity::warning], "warning") : "";
  return fmt::format("{}{}; exit code {}", found, warned, static_cast<int>(report.exit_code));
}

const char* label_of(Severity severity) {
  return severity == Severity::error     ? "**error**"
         : severity == Severity::warning ? "warning"
                                         : "info";
}

void add_remarks(const std::vector<Remark>& remarks, Page& page) {
  std::vector<std::vector<std::string>> rows;
  for (const Remark& remark : remarks)
    rows.push_back(
        {label_of(remark.severity), text(remark.id), text(remark.message), code(remark.fix)});
  page.table({"", "finding", "what", "fix"}, rows, "finding");
}

/// A parameter of the rows of one case.
struct Parameter {
  std::string shown; ///< the first row's value
  std::size_t rows = 0;
  bool differs = false;
};

/// The parameters of rows by case: parameters that all rows of a case share are listed once.
class Parameters {
public:
  void learn(const std::string& case_name, const json& params) {
    Case& known = cases_[case_name];
    ++known.rows;
    if (!params.is_object())
      return;
    for (const auto& [name, value] : params.items()) {
      Parameter& parameter = known.parameters[name];
      const std::string shown = value_text(name, value);
      if (parameter.rows++ == 0)
        parameter.shown = shown;
      parameter.differs = parameter.differs || parameter.shown != shown;
    }
  }

  /// "size_bytes=4K window=64": the size and the parameters that the row does not share with the
  /// other rows of its case; all parameters if there are no other rows.
  std::string of(const std::string& case_name, const json& params) const {
    const auto found = cases_.find(case_name);
    std::vector<std::string> parts;
    if (params.is_object() && found != cases_.end())
      for (const auto& [name, value] : params.items())
        if (!is_dependent(name) && !is_shared(found->second, name))
          parts.push_back(name + "=" + value_text(name, value));
    return join(parts, " ");
  }

  /// "put, all rows: pes=2 traffic=pair": a line for each case whose rows share parameters.
  std::string shared() const {
    std::string lines;
    std::size_t count = 0;
    for (const auto& [case_name, known] : cases_) {
      std::vector<std::string> parts;
      for (const auto& [name, parameter] : known.parameters)
        if (!is_dependent(name) && is_shared(known, name))
          parts.push_back(name + "=" + parameter.shown);
      if (!parts.empty() && ++count <= max_lines)
        lines += "- " + text(case_name + ", all rows: " + join(parts, " ")) + "\n";
    }
    return lines;
  }

private:
  struct Case {
    std::map<std::string, Parameter> parameters;
    std::size_t rows = 0;
  };

  static bool is_shared(const Case& known, const std::string& name) {
    const auto found = known.parameters.find(name);
    return name != "size_bytes" && known.rows > 1 && found != known.parameters.end() &&
           !found->second.differs && found->second.rows == known.rows;
  }
  static std::string value_text(const std::string& name, const json& value) {
    return name == "size_bytes" && value.is_number_integer() && value >= 0
               ? format_size_bytes(value.get<std::uint64_t>())
               : view::scalar(value).value_or("?");
  }
  std::map<std::string, Case> cases_;
};

std::string value_cell(const json& row, const char* side) {
  const auto value = view::number(view::member(row, side), "value");
  return value ? text(view::decimal(*value) + " " + view::text(row, "unit")) : "";
}

std::string name_of(const json& row, const Parameters& parameters) {
  const std::string hosts = hosts_of_row(row);
  const std::string own = parameters.of(view::text(row, "case"), view::member(row, "params"));
  return hosts.empty() ? own : own + (own.empty() ? "on " : " on ") + hosts;
}

void add_comparison(const json& comparison, Page& page) {
  page.line(text(verdict_text(comparison)) + "\n");
  std::vector<std::vector<std::string>> rows;
  Parameters parameters;
  for (const json& row : view::list(comparison, "rows"))
    parameters.learn(view::text(row, "case"), view::member(row, "params"));
  for (const std::string verdict : {"worse", "missing", "unclear", "better", "new"})
    for (const json& row : view::list(comparison, "rows")) {
      if (view::text(row, "verdict") != verdict)
        continue;
      const auto change = view::number(row, "change");
      rows.push_back({verdict == "worse" ? "**worse**" : verdict, text(view::text(row, "case")),
                      text(name_of(row, parameters)), value_cell(row, "base"),
                      value_cell(row, "new"),
                      change ? text(fmt::format("{:+.1f}%", *change * 100)) : "",
                      text(view::text(row, "reason"))});
    }
  page.table({"", "case", "parameters", "before", "now", "change", "why"}, rows, "changed row");
  if (!rows.empty())
    page.list(parameters.shared());
  std::vector<std::string> counts;
  for (const char* verdict : {"worse", "missing", "unclear", "better", "new", "same"})
    if (const auto count = view::number(view::member(comparison, "counts"), verdict))
      counts.push_back(fmt::format("{:.0f} {}", *count, verdict));
  if (!counts.empty())
    page.line("Rows: " + join(counts, ", ") + "\n");
}

void add_thresholds(const json& thresholds, Page& page) {
  std::vector<std::vector<std::string>> rows;
  for (const json& threshold : thresholds) {
    const bool passed = view::member(threshold, "passed") == json(true);
    rows.push_back({passed ? "kept" : "**missed**", code(view::text(threshold, "expression")),
                    text(view::text(threshold, "failed") + " of " + view::text(threshold, "rows")),
                    text(view::text(threshold, "worst"))});
  }
  page.table({"", "threshold", "rows that do not meet it", "worst"}, rows, "threshold");
}

void add_checks(const Report& report, Page& page) {
  std::map<std::string, std::size_t> counts;
  for (const CheckRow& check : report.checks)
    ++counts[check.status];
  std::vector<std::string> parts;
  for (const char* status : {"pass", "warning", "fail", "skipped"})
    if (const auto found = counts.find(status); found != counts.end())
      parts.push_back(std::to_string(found->second) + " " + status);
  if (!parts.empty())
    page.line("Checks: " + join(parts, ", ") + "\n");
}

std::string number_cell(const std::optional<double>& value, int digits = 4) {
  return value ? text(view::decimal(*value, digits)) : "";
}

const char* label_of(const ResultRow& row) {
  if (row.status == RowStatus::fail || row.verified == Verified::failed)
    return "**failed**";
  return row.status == RowStatus::skip ? "skipped" : to_string(row.verified);
}

/// A table of the results, and below it, once for each case, the parameters that all its rows
/// share.
void add_results(const Report& report, Page& page) {
  Parameters parameters;
  for (const ResultRow& row : report.results)
    parameters.learn(row.case_name, row.params);
  std::vector<std::vector<std::string>> rows;
  for (const ResultRow& row : report.results) {
    const Stats stats = row.stats.value_or(Stats{});
    rows.push_back({text(row.case_name), text(parameters.of(row.case_name, row.params)),
                    number_cell(stats.p50), number_cell(stats.p99), text(row.unit),
                    number_cell(row.bandwidth_GBps),
                    row.link_fraction ? text(fmt::format("{:.1f}%", *row.link_fraction * 100)) : "",
                    label_of(row)});
  }
  page.table({"case", "parameters", "p50", "p99", "unit", "GB/s", "of the limit", "verified"}, rows,
             "row");
  if (!rows.empty())
    page.list(parameters.shared());
}

std::string load_cell(const json& direction) {
  const auto GBps = view::number(direction, "GBps"), share = view::number(direction, "link_share");
  return GBps ? text(view::decimal(*GBps) + " GB/s" +
                     (share ? fmt::format(" {:.0f}%", *share * 100) : ""))
              : "";
}

void add_nics(const json& hotspots, Page& page) {
  std::vector<std::vector<std::string>> rows;
  for (const json& port : view::list(hotspots, "ports"))
    rows.push_back({text(view::text(port, "host")), text(port_name(port)),
                    load_cell(view::member(port, "sent")),
                    load_cell(view::member(port, "received")),
                    view::member(port, "hot") == json(true) ? "**hot**" : ""});
  page.table({"host", "NIC", "sent", "received", ""}, rows, "NIC");
}

/// The report's subject, its verdict, its findings, and the results of comparisons.
void add_summary(const LoadedReport& loaded, Page& page) {
  const Report& report = loaded.report;
  const std::vector<Remark> remarks = remarks_of(loaded);
  page.line("### " + text(subcommand_of(report) + hosts_of(report)) + "\n");
  page.line(text(verdict_of(report, remarks)) + "\n");
  add_remarks(remarks, page);
  if (report.comparison.is_object())
    add_comparison(report.comparison, page);
  add_thresholds(report.thresholds, page);
  add_checks(report, page);
}

} // namespace

std::string write_markdown(const std::vector<LoadedReport>& reports) {
  Page page;
  std::size_t reported = 0;
  for (const LoadedReport& loaded : reports) {
    if (page.full())
      break;
    add_summary(loaded, page);
    ++reported;
  }
  if (reported < reports.size())
    page.line("and " + counted(reports.size() - reported, "more report"));
  return page.take();
}

} // namespace shmemctl::annotate

namespace shmemctl {

std::string write_markdown_page(const LoadedReport& loaded) {
  annotate::Page page;
  annotate::add_summary(loaded, page);
  annotate::add_nics(loaded.report.hotspots, page);
  annotate::add_results(loaded.report, page);
  return page.take();
}

} // namespace shmemctl
