// A page in GitHub's Markdown, for a step's summary.
#include <fmt/format.h>
#include <map>

#include "reports/annotate/remark.h"
#include "reports/compare/compare.h"
#include "reports/json_view.h"
#include "reports/table.h"
#include "src/base/counted.h"
#include "src/base/text.h"

namespace shmemctl::annotate {

namespace {

using nlohmann::json;

/// GitHub refuses the summary of a step beyond 1 MiB as a whole.
constexpr std::size_t most_bytes = 900'000;
constexpr std::size_t most_lines = 50;
/// Characters of a cell.
constexpr std::size_t longest_cell = 500;

/// Text as itself: every character that could be markup, HTML or the start of a link is written as
/// a reference to it, which CommonMark never takes for structure.
std::string text(const std::string& words) {
  std::string safe = safe_text(words);
  if (safe.size() > longest_cell) {
    std::size_t end = longest_cell;
    while (end > 0 && (static_cast<unsigned char>(safe[end]) & 0xc0) == 0x80)
      --end;
    safe = safe.substr(0, end) + "...";
  }
  std::string out;
  for (const char c : safe) {
    const bool plain = static_cast<unsigned char>(c) >= 0x80 || (c >= '0' && c <= '9') ||
                       (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == ' ' || c == '-' ||
                       c == ',' || c == '/' || c == '=' || c == '%' || c == '+';
    out += plain ? std::string(1, c)
                 : "&#" + std::to_string(static_cast<int>(static_cast<unsigned char>(c))) + ";";
  }
  return out;
}

std::string code(const std::string& words) {
  return words.empty() ? "" : "<code>" + text(words) + "</code>";
}

class Page {
public:
  void line(const std::string& markup) { out_ += markup + "\n"; }

  /// Rows of a table while there is room; what is left out is counted.
  void table(const std::vector<std::string>& header,
             const std::vector<std::vector<std::string>>& rows, const std::string& what) {
    if (rows.empty())
      return;
    row(header);
    row(std::vector<std::string>(header.size(), "---"));
    std::size_t written = 0;
    for (; written < rows.size() && written < most_lines && out_.size() < most_bytes; ++written)
      row(rows[written]);
    if (written < rows.size())
      out_ += "\nand " + counted(rows.size() - written, "more " + what) + "\n";
    out_ += "\n";
  }
  bool full() const { return out_.size() >= most_bytes; }
  std::string take() { return std::move(out_); }

private:
  void row(const std::vector<std::string>& cells) { out_ += "| " + join(cells, " | ") + " |\n"; }

  std::string out_;
};

/// "shmemctl check", "shmemctl report diff": not what stands behind it.
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

const char* word_of(Severity severity) {
  return severity == Severity::error     ? "**error**"
         : severity == Severity::warning ? "warning"
                                         : "info";
}

void add_remarks(const std::vector<Remark>& remarks, Page& page) {
  std::vector<std::vector<std::string>> rows;
  for (const Remark& remark : remarks)
    rows.push_back(
        {word_of(remark.severity), text(remark.id), text(remark.message), code(remark.fix)});
  page.table({"", "finding", "what", "fix"}, rows, "finding");
}

std::string value_cell(const json& row, const char* side) {
  const auto value = view::number(view::member(row, side), "value");
  return value ? text(view::decimal(*value) + " " + view::text(row, "unit")) : "";
}

void add_comparison(const json& comparison, Page& page) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string verdict : {"worse", "missing", "unclear", "better", "new"})
    for (const json& row : view::list(comparison, "rows")) {
      if (view::text(row, "verdict") != verdict)
        continue;
      const auto change = view::number(row, "change");
      rows.push_back({verdict == "worse" ? "**worse**" : verdict, text(view::text(row, "case")),
                      text(row_name(row)), value_cell(row, "base"), value_cell(row, "new"),
                      change ? text(fmt::format("{:+.1f}%", *change * 100)) : "",
                      text(view::text(row, "reason"))});
    }
  page.table({"", "case", "parameters", "before", "now", "change", "why"}, rows, "changed row");
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
  page.table({"", "threshold", "rows that miss it", "worst"}, rows, "threshold");
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

} // namespace

std::string write_markdown(const std::vector<LoadedReport>& reports) {
  Page page;
  std::size_t told = 0;
  for (const LoadedReport& loaded : reports) {
    if (page.full())
      break;
    const Report& report = loaded.report;
    const std::vector<Remark> remarks = remarks_of(loaded);
    page.line("### " + text(subcommand_of(report) + hosts_of(report)) + "\n");
    page.line(text(verdict_of(report, remarks)) + "\n");
    add_remarks(remarks, page);
    if (report.comparison.is_object())
      add_comparison(report.comparison, page);
    add_thresholds(report.thresholds, page);
    add_checks(report, page);
    ++told;
  }
  if (told < reports.size())
    page.line("and " + counted(reports.size() - told, "more report"));
  return page.take();
}

} // namespace shmemctl::annotate
