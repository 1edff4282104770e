// A comparison as a part of the report: its JSON, and findings.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "reports/compare/compare.h"
#include "reports/json_view.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::array all_verdicts = {RowVerdict::better,  RowVerdict::worse,   RowVerdict::same,
                                     RowVerdict::unclear, RowVerdict::missing, RowVerdict::added};
/// No number in a report is larger.
constexpr double largest_number = 1e18;

nlohmann::json side_json(const ComparedSide& side) {
  return {{"files", side.files}, {"runs", side.runs}, {"rows", side.rows}};
}

void set(nlohmann::json& object, const char* key, const std::optional<double>& value) {
  if (value && std::isfinite(*value))
    object[key] = std::min(*value, largest_number);
}

void set(nlohmann::json& object, const char* key, const std::optional<SideValue>& side) {
  if (!side)
    return;
  nlohmann::json value{{"samples", side->samples}, {"runs", side->runs}};
  set(value, "value", side->value);
  object[key] = std::move(value);
}

nlohmann::json row_json(const ComparedRow& row) {
  nlohmann::json object{{"case", row.case_name},
                        {"params", row.params},
                        {"verdict", to_string(row.verdict)},
                        {"unit", row.unit}};
  if (!row.hosts.empty())
    object["hosts"] = row.hosts;
  if (!row.reason.empty())
    object["reason"] = row.reason;
  if (!row.test.empty())
    object["test"] = row.test;
  set(object, "base", row.base);
  set(object, "new", row.other);
  set(object, "change", row.change);
  set(object, "change_low", row.change_low);
  set(object, "change_high", row.change_high);
  set(object, "p", row.p);
  set(object, "p_adjusted", row.p_adjusted);
  return object;
}

} // namespace

nlohmann::json comparison_json(const Comparison& comparison) {
  nlohmann::json document{
      {"base", side_json(comparison.base)},     {"new", side_json(comparison.other)},
      {"alpha", comparison.options.alpha},      {"min_effect", comparison.options.min_effect},
      {"differences", nlohmann::json::array()}, {"counts", nlohmann::json::object()},
      {"rows", nlohmann::json::array()}};
  set(document, "max_unclear", comparison.options.max_unclear);
  for (const Difference& difference : comparison.differences)
    document["differences"].push_back(
        {{"what", difference.what}, {"base", difference.base}, {"new", difference.other}});
  for (const RowVerdict verdict : all_verdicts)
    document["counts"][to_string(verdict)] = comparison.count(verdict);
  for (const ComparedRow& row : comparison.rows)
    document["rows"].push_back(row_json(row));
  return document;
}

namespace {

std::string name_on(const nlohmann::json& params, const std::string& hosts) {
  const std::string text = params.is_object() ? params_text(params) : "";
  return hosts.empty() ? text : text + (text.empty() ? "on " : " on ") + hosts;
}

struct CaseRows {
  std::size_t count = 0;
  const ComparedRow* worst = nullptr;
};

/// Rows with one verdict, by case, and for each case the one that changed most.
std::map<std::string, CaseRows> by_case(const Comparison& comparison, RowVerdict verdict) {
  const auto size = [](const ComparedRow& row) {
    return row.change ? std::abs(std::log1p(*row.change)) : HUGE_VAL; // a failure has no number
  };
  std::map<std::string, CaseRows> cases;
  for (const ComparedRow& row : comparison.rows) {
    if (row.verdict != verdict)
      continue;
    CaseRows& rows = cases[row.case_name];
    ++rows.count;
    if (!rows.worst || size(row) > size(*rows.worst))
      rows.worst = &row;
  }
  return cases;
}

std::string change_of(const ComparedRow& row) {
  if (!row.reason.empty() || !row.change || !row.base || !row.other)
    return row.reason;
  return fmt::format("{} -> {} {} ({:+.1f}%)", view::decimal(row.base->value.value_or(0)),
                     view::decimal(row.other->value.value_or(0)), row.unit, *row.change * 100);
}

Finding of_case(const std::string& id, Severity severity, const std::string& name,
                const CaseRows& rows, const std::string& what, const std::string& fix) {
  const std::string row = row_name(*rows.worst);
  return {id, severity, name,
          name + ": " + counted(rows.count, "row") + " " + what +
              (rows.count > 1 ? ", most of all " : ": ") + (row.empty() ? "" : row + ": ") +
              change_of(*rows.worst),
          fix};
}

} // namespace

std::string params_text(const nlohmann::json& params) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : params.items())
    if (!is_dependent(name))
      parts.push_back(name + "=" + view::scalar(value).value_or("null"));
  return join(parts, " ");
}

std::optional<ChangeInterval> interval_of_row(const nlohmann::json& row) {
  constexpr double largest_factor = 1000;
  const auto low = view::number(row, "change_low"), high = view::number(row, "change_high");
  if (!low || !high || !(*high + 1 <= largest_factor) || !(*low + 1 >= 1 / largest_factor))
    return std::nullopt;
  return ChangeInterval{*low, *high};
}

std::string hosts_of_row(const nlohmann::json& row) {
  std::vector<std::string> hosts;
  for (const nlohmann::json& host : view::list(row, "hosts"))
    hosts.push_back(view::scalar(host).value_or("?"));
  return join(hosts, "+");
}

std::string row_name(const ComparedRow& row) {
  return name_on(row.params, join(row.hosts, "+"));
}

std::string row_name(const nlohmann::json& row) {
  return name_on(view::member(row, "params"), hosts_of_row(row));
}

std::string verdict_text(const nlohmann::json& comparison) {
  const auto count = [&comparison](const char* verdict) {
    return static_cast<std::size_t>(
        view::number(view::member(comparison, "counts"), verdict).value_or(0));
  };
  const std::size_t worse = count("worse"), unclear = count("unclear");
  const std::size_t decided = worse + count("better") + count("same");
  const std::size_t compared = decided + unclear;
  const std::string found = worse == 0
                                ? "Nothing is worse"
                                : counted(worse, "row") + (worse == 1 ? " is" : " are") + " worse";
  std::string text;
  if (compared == 0)
    text = "No row is on both sides.";
  else if (decided == 0)
    text = compared == 1 ? "Nothing is decided: the only row is unclear."
                         : fmt::format("Nothing is decided: all {} rows are unclear.", compared);
  else if (unclear == 0)
    text = found + (compared == 1 ? "; the only row is decided."
                                  : fmt::format("; all {} rows are decided.", compared));
  else
    text = fmt::format("{}; {} of {} rows {} decided, {} {} unclear.", found, decided, compared,
                       decided == 1 ? "is" : "are", unclear, unclear == 1 ? "is" : "are");
  if (const std::size_t missing = count("missing"); missing > 0)
    text += " " + counted(missing, "row") + (missing == 1 ? " is" : " are") + " missing.";
  return text;
}

namespace {

/// A finding if there are more unclear rows than --max-unclear allows or, without it, more than
/// half.
std::optional<Finding> unclear_finding(const Comparison& comparison) {
  const std::size_t unclear = comparison.count(RowVerdict::unclear);
  const std::size_t compared = comparison.compared();
  const std::optional<double>& allowed = comparison.options.max_unclear;
  const double share =
      compared == 0 ? 0 : static_cast<double>(unclear) / static_cast<double>(compared);
  if (!(share > allowed.value_or(0.5)))
    return std::nullopt;
  const std::string limit = allowed
                                ? fmt::format("more than --max-unclear {:g}%", *allowed * 100)
                                : std::string("nothing is decided about most of what was measured");
  return Finding{"comparison-unclear", allowed ? Severity::error : Severity::warning,
                 "the comparison",
                 fmt::format("{} of {} {} unclear: {}", unclear, counted(compared, "row"),
                             unclear == 1 ? "is" : "are", limit),
                 "measure longer (-D 5), and more runs on each side, in folders"};
}

/// A finding about runs that other processes disturbed, if there are changes that these may have
/// caused.
std::optional<Finding> disturbed_finding(const Comparison& comparison) {
  if (comparison.base.disturbed + comparison.other.disturbed == 0 ||
      comparison.count(RowVerdict::worse) + comparison.count(RowVerdict::better) == 0)
    return std::nullopt;
  return Finding{
      "comparison-disturbed", Severity::warning, "the comparison",
      fmt::format("other processes disturbed {} of {} of BASE and {} of {} of NEW "
                  "(bench-interference): changes may be their doing",
                  comparison.base.disturbed, counted(comparison.base.files.size(), "report"),
                  comparison.other.disturbed, counted(comparison.other.files.size(), "report")),
      "measure both on a machine that does nothing else, several runs on each side"};
}

} // namespace

Findings comparison_findings(const Comparison& comparison, bool allow_missing) {
  Findings findings;
  if (!comparison.differences.empty()) {
    std::vector<std::string> names;
    for (const Difference& difference : comparison.differences)
      names.push_back(difference.what);
    constexpr std::size_t max_named = 8;
    const std::size_t more = names.size() > max_named ? names.size() - max_named : 0;
    names.resize(names.size() - more);
    findings.push_back({"comparison-differs", Severity::warning, names.front(),
                        "not the same on both sides: " + join(names, ", ") +
                            (more > 0 ? " and " + std::to_string(more) + " more" : ""),
                        "read the changes with that in mind, or measure both on the same machine "
                        "and with the same options"});
  }
  if (auto finding = unclear_finding(comparison))
    findings.push_back(std::move(*finding));
  if (auto finding = disturbed_finding(comparison))
    findings.push_back(std::move(*finding));
  for (const auto& [name, rows] : by_case(comparison, RowVerdict::worse))
    findings.push_back(of_case("regression", Severity::error, name, rows,
                               rows.count == 1 ? "is worse" : "are worse",
                               "find what changed between the runs; measure again, several "
                               "times on each side, to be surer"));
  for (const auto& [name, rows] : by_case(comparison, RowVerdict::missing))
    findings.push_back(of_case("row-missing", allow_missing ? Severity::info : Severity::error,
                               name, rows, rows.count == 1 ? "is missing" : "are missing",
                               allow_missing ? "nothing: --allow-missing was given"
                                             : "measure them in NEW too, or give --allow-missing"));
  return findings;
}

} // namespace shmemctl
