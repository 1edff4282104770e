// Problems first, then what was compared.
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "reports/compare/compare.h"
#include "reports/html/blocks.h"
#include "reports/html/charts.h"
#include "reports/html/sections.h"
#include "reports/json_view.h"
#include "reports/table.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

json findings_block(const std::vector<Shown>& shown, const Findings& compared) {
  json items = json::array();
  const auto add = [&items](const Findings& findings, Severity severity, const std::string& where) {
    for (const Finding& finding : findings)
      if (finding.severity == severity && items.size() < max_table_rows)
        items.push_back({{"severity", to_string(severity)},
                         {"id", safe_text(finding.id)},
                         {"subject", safe_text(finding.subject)},
                         {"message", safe_text(finding.message)},
                         {"fix", safe_text(finding.fix)},
                         {"where", safe_text(where)}});
  };
  for (const Severity severity : {Severity::error, Severity::warning, Severity::info}) {
    add(compared, severity, "vs. the baseline");
    for (const Shown& one : shown)
      add(one.report().findings, severity, one.label);
  }
  return items.empty() ? json() : json{{"type", "findings"}, {"items", std::move(items)}};
}

json checks_block(const std::vector<Shown>& shown) {
  TableBlock table("Checks", {{"where"},
                              {"status", ColumnKind::status},
                              {"check", ColumnKind::code},
                              {"what"},
                              {"answer"},
                              {"evidence"},
                              {"fix", ColumnKind::code}});
  static constexpr std::array order = {"fail", "warning", "pass", "skipped"};
  for (const char* status : order)
    for (const Shown& one : shown)
      for (const CheckRow& check : one.report().checks)
        if (check.status == status)
          table.add({cell(one.label), cell(check.status), cell(check.id), cell(check.title),
                     cell(check.reason), cell(check.evidence), cell(check.fix)});
  table.fold();
  return table.empty() ? json() : table.block();
}

json thresholds_block(const std::vector<Shown>& shown) {
  TableBlock table("Thresholds", {{"threshold", ColumnKind::code},
                                  {"rows", ColumnKind::number},
                                  {"missed", ColumnKind::number},
                                  {"worst", ColumnKind::number},
                                  {"verdict", ColumnKind::status},
                                  {"from"}});
  for (const Shown& one : shown)
    for (const json& threshold : one.report().thresholds)
      table.add({cell(view::member(threshold, "expression")), cell(view::member(threshold, "rows")),
                 cell(view::member(threshold, "failed")), cell(view::member(threshold, "worst")),
                 cell(std::string(view::member(threshold, "passed") == true ? "passed" : "missed")),
                 cell(view::member(threshold, "source"))});
  return table.empty() ? json() : table.block();
}

json differences_block(const json& comparison) {
  TableBlock table("Not the same on both sides", {{"what"}, {"baseline"}, {"new"}});
  const auto words = [](const json& difference, const char* side) {
    std::vector<std::string> values;
    for (const json& value : view::list(difference, side))
      values.push_back(view::scalar(value).value_or("?"));
    return cell(values.empty() ? "not recorded" : join(values, "; "));
  };
  for (const json& difference : view::list(comparison, "differences"))
    table.add({cell(view::member(difference, "what")), words(difference, "base"),
               words(difference, "new")});
  return table.empty() ? json() : table.block();
}

json compared_rows_block(const json& comparison) {
  TableBlock table("Rows, worst first", {{"verdict", ColumnKind::status},
                                         {"case", ColumnKind::code},
                                         {"parameters"},
                                         {"hosts"},
                                         {"baseline", ColumnKind::number},
                                         {"new", ColumnKind::number},
                                         {"unit"},
                                         {"change", ColumnKind::share},
                                         {"from", ColumnKind::share},
                                         {"to", ColumnKind::share},
                                         {"p", ColumnKind::number},
                                         {"reason"}});
  static constexpr std::array order = {"worse", "missing", "unclear", "better", "new", "same"};
  for (const char* verdict : order)
    for (const json& row : view::list(comparison, "rows")) {
      if (view::text(row, "verdict") != verdict)
        continue;
      const auto interval = interval_of_row(row);
      const auto end = [&interval](double ChangeInterval::*which) {
        return interval ? cell(std::optional<double>((*interval).*which)) : json();
      };
      table.add({cell(std::string(verdict)), cell(view::member(row, "case")),
                 cell(parameters_text(view::member(row, "params"))), cell(hosts_of_row(row)),
                 cell(view::member(view::member(row, "base"), "value")),
                 cell(view::member(view::member(row, "new"), "value")),
                 cell(view::member(row, "unit")), cell(view::member(row, "change")),
                 end(&ChangeInterval::low), end(&ChangeInterval::high),
                 cell(view::member(row, "p_adjusted")), cell(view::member(row, "reason"))});
    }
  return table.empty() ? json() : table.block();
}

void add(json& blocks, json block) {
  if (!block.is_null())
    blocks.push_back(std::move(block));
}

} // namespace

json findings_section(const std::vector<Shown>& shown, const Findings& compared) {
  json blocks = json::array();
  add(blocks, findings_block(shown, compared));
  if (blocks.empty())
    blocks.push_back(note_block("No findings."));
  add(blocks, thresholds_block(shown));
  add(blocks, checks_block(shown));
  return section("findings", "Findings", std::move(blocks));
}

json comparison_section(const json& comparison) {
  if (!comparison.is_object())
    return nullptr;
  json blocks = json::array();
  std::vector<std::string> words;
  for (const char* verdict : {"worse", "missing", "unclear", "better", "new", "same"})
    if (const auto count = view::number(view::member(comparison, "counts"), verdict);
        count && *count > 0)
      words.push_back(view::decimal(*count) + " " + verdict);
  blocks.push_back(note_block("Compared with the baseline: " + join(words, ", ") + "."));
  add(blocks, differences_block(comparison));
  add(blocks, compared_rows_block(comparison));
  return section("comparison", "Beside the baseline", std::move(blocks));
}

} // namespace shmemctl::html
