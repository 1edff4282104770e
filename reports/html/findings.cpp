// The findings and checks of a page, and its comparison: problems first.
#include "reports/html/findings.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

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

/// Groups of a page; a hostile document may have any number of ids.
constexpr std::size_t max_groups = 1000;

/// All findings of a group, as a table.
json members_block(const FindingGroup& group) {
  TableBlock table("", {{"where"}, {"subject"}, {"message"}, {"fix", ColumnKind::code}});
  const std::string& common_fix = group.first().fix;
  const bool one_fix =
      std::all_of(group.findings.begin(), group.findings.end(),
                  [&](const PlacedFinding& one) { return one.finding->fix == common_fix; });
  for (const PlacedFinding& one : group.findings)
    table.add({cell(one.where), cell(one.finding->subject), cell(one.finding->message),
               one_fix ? json() : cell(one.finding->fix)});
  return table.block();
}

json group_json(const FindingGroup& group) {
  constexpr std::size_t max_subjects = 4;
  const Finding& first = group.first();
  const bool alone = group.findings.size() == 1;
  json item{{"severity", to_string(first.severity)},
            {"id", safe_text(first.id)},
            {"count", group.findings.size()},
            {"subject", safe_text(alone ? first.subject : listed(group.subjects(), max_subjects))},
            {"message", safe_text(first.message)},
            {"fix", safe_text(first.fix)},
            {"where", safe_text(alone ? group.findings.front().where : std::string())}};
  if (!alone)
    item["all"] = members_block(group);
  return item;
}

json findings_block(const std::vector<Shown>& shown, const Findings& compared) {
  json items = json::array();
  const std::vector<FindingGroup> groups = grouped_findings(shown, compared);
  for (std::size_t i = 0; i < groups.size() && i < max_groups; ++i)
    items.push_back(group_json(groups[i]));
  if (items.empty())
    return nullptr;
  json block{{"type", "findings"}, {"items", std::move(items)}};
  if (groups.size() > max_groups)
    block["note"] = counted(groups.size() - max_groups, "kind") + " more: the report has them.";
  return block;
}

/// The verdict on each part of `check` is a check of this group.
constexpr const char* verdict_group = "verdict";

json parts_block(const std::vector<Shown>& shown) {
  json parts = json::array();
  for (const Shown& one : shown)
    for (const CheckRow& check : one.report().checks)
      if (check.group == verdict_group && parts.size() < max_groups)
        parts.push_back({{"status", safe_text(check.status)},
                         {"name", safe_text(labelled(one.label, check.id))},
                         {"title", safe_text(check.title)},
                         {"reason", safe_text(check.reason)}});
  return parts.empty() ? json() : json{{"type", "parts"}, {"parts", std::move(parts)}};
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
        if (check.status == status && check.group != verdict_group)
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

std::vector<std::string> FindingGroup::subjects() const {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const PlacedFinding& one : findings) {
    const std::string& subject = one.finding->subject;
    const bool alone = one.compared || starts_with(subject, one.where);
    const std::string name = alone ? subject : labelled(one.where, subject);
    if (!name.empty() && seen.insert(name).second)
      names.push_back(name);
  }
  return names;
}

std::vector<FindingGroup> grouped_findings(const std::vector<Shown>& shown,
                                           const Findings& compared) {
  std::vector<FindingGroup> groups;
  std::map<std::pair<Severity, std::string>, std::size_t> index_of;
  const auto add_all = [&](const Findings& findings, Severity severity, const std::string& where,
                           bool is_compared) {
    for (const Finding& finding : findings) {
      if (finding.severity != severity)
        continue;
      const auto [found, is_new] = index_of.emplace(std::pair(severity, finding.id), groups.size());
      if (is_new)
        groups.emplace_back();
      groups[found->second].findings.push_back({&finding, where, is_compared});
    }
  };
  for (const Severity severity : {Severity::error, Severity::warning, Severity::info}) {
    add_all(compared, severity, "vs. the baseline", true);
    for (const Shown& one : shown)
      add_all(one.report().findings, severity, one.label, false);
  }
  return groups;
}

std::string listed(const std::vector<std::string>& texts, std::size_t max_listed) {
  if (texts.size() <= 1)
    return texts.empty() ? std::string() : texts.front();
  const std::size_t kept = texts.size() <= max_listed ? texts.size() - 1 : max_listed;
  const auto end = texts.begin() + static_cast<std::ptrdiff_t>(kept);
  return join({texts.begin(), end}, ", ") + " and " +
         (texts.size() <= max_listed ? texts.back()
                                     : std::to_string(texts.size() - max_listed) + " more");
}

json findings_section(const std::vector<Shown>& shown, const Findings& compared) {
  json blocks = json::array();
  add(blocks, parts_block(shown));
  add(blocks, findings_block(shown, compared));
  if (grouped_findings(shown, compared).empty())
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
