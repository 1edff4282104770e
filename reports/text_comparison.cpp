// Changes between two sets of reports, and thresholds, as text.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>

#include "reports/compare/compare.h"
#include "reports/json_view.h"
#include "reports/text.h"
#include "src/base/text.h"
#include "src/base/units.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// Rows that are printed unless --verbose asks for all.
constexpr std::size_t max_compared_rows = 100;
constexpr std::array order = {"worse", "missing", "unclear", "better", "new", "same"};

std::string side_text(const json& side) {
  std::vector<std::string> files;
  for (const json& file : view::list(side, "files"))
    files.push_back(safe_text(view::scalar(file).value_or("?")));
  constexpr std::size_t max_files = 3;
  const bool more = files.size() > max_files;
  const std::string all = more ? files.front() + " ... " + files.back() : join(files, ", ");
  const auto runs = static_cast<std::size_t>(view::number(side, "runs").value_or(0));
  const auto rows = static_cast<std::size_t>(view::number(side, "rows").value_or(0));
  return all + " (" + counted(runs, "run") + ", " + counted(rows, "row") + ")";
}

std::string values_text(const json& difference, const char* side) {
  std::vector<std::string> values;
  for (const json& value : view::list(difference, side))
    values.push_back(safe_text(view::scalar(value).value_or("?")));
  return values.empty() ? "not recorded" : join(values, "; ");
}

std::string differences_text(const json& differences, const TextStyle& style) {
  if (differences.empty())
    return "";
  Table table({{"not the same on both sides"}, {"BASE"}, {"NEW"}});
  for (const json& difference : differences)
    table.add({view::text(difference, "what"), values_text(difference, "base"),
               values_text(difference, "new")});
  return table.text(style) + "\n";
}

/// By case: parameters that differ between its rows; the others would only clutter the table.
using Varying = std::map<std::string, std::set<std::string>>;

Varying varying_parameters(const json& rows) {
  std::map<std::string, std::map<std::string, const json*>> seen;
  Varying varying;
  for (const json& row : rows) {
    const std::string name = view::text(row, "case");
    const json& params = view::member(row, "params");
    if (!params.is_object())
      continue;
    for (const auto& [key, value] : params.items()) {
      const auto [found, is_new] = seen[name].emplace(key, &value);
      if (key == "size_bytes" || (!is_new && *found->second != value))
        varying[name].insert(key);
    }
  }
  return varying;
}

std::string parameters_text(const json& row, const std::set<std::string>& names) {
  std::vector<std::string> parts;
  const json& params = view::member(row, "params");
  for (const std::string& name : names) {
    const json& value = view::member(params, name.c_str());
    if (is_dependent(name) || value.is_null())
      continue;
    const bool size = name == "size_bytes" && value.is_number_integer() && value >= 0;
    parts.push_back(safe_text(name) + "=" +
                    (size ? format_size_bytes(value.get<std::uint64_t>())
                          : safe_text(view::scalar(value).value_or("?"))));
  }
  if (const std::string hosts = hosts_of_row(row); !hosts.empty())
    parts.push_back("on " + safe_text(hosts));
  return parts.empty() ? "-" : join(parts, " ");
}

std::string value_cell(const json& row, const char* side) {
  const auto value = view::number(view::member(row, side), "value");
  return value ? view::decimal(*value) : "-";
}

std::string percent(const std::optional<double>& change) {
  if (!change)
    return "-";
  return std::abs(*change) < 10 ? fmt::format("{:+.1f}%", *change * 100)
                                : fmt::format("x {:.3g}", *change + 1);
}

std::string interval_cell(const json& row) {
  const auto interval = interval_of_row(row);
  return interval ? percent(interval->low) + " to " + percent(interval->high) : "-";
}

std::string p_cell(const json& row) {
  const auto p = view::number(row, "p_adjusted");
  return p ? (*p < 1e-4 ? std::string("<0.0001") : fmt::format("{:.4f}", *p)) : "-";
}

std::string rows_text(const json& rows, const TextStyle& style) {
  const Varying varying = varying_parameters(rows);
  static const std::set<std::string> none;
  Table table({{"verdict"},
               {"case"},
               {"parameters"},
               {"BASE", Align::right},
               {"NEW", Align::right},
               {"unit"},
               {"change", Align::right},
               {"95% interval", Align::right},
               {"p", Align::right},
               {"why"}});
  std::size_t printed = 0, left_out = 0;
  for (const std::string verdict : order) {
    if ((verdict == "same" || verdict == "unclear") && !style.verbose)
      continue;
    for (const json& row : rows) {
      if (view::text(row, "verdict") != verdict)
        continue;
      if (!style.verbose && printed == max_compared_rows) {
        ++left_out;
        continue;
      }
      ++printed;
      const std::string name = view::text(row, "case");
      const auto names = varying.find(name);
      table.add({verdict, name, parameters_text(row, names == varying.end() ? none : names->second),
                 value_cell(row, "base"), value_cell(row, "new"), view::text(row, "unit"),
                 percent(view::number(row, "change")), interval_cell(row), p_cell(row),
                 view::text(row, "reason")});
    }
  }
  if (printed == 0)
    return "";
  return table.text(style) +
         (left_out > 0
              ? "... and " + counted(left_out, "more row") + ": --verbose or --json has all\n"
              : "") +
         "\n";
}

/// Unclear rows of one case for one reason.
struct UnclearRows {
  std::string name, reason;
  std::vector<const json*> rows;
};

/// ", changes -14.4% to +9.1%": the changes of these rows; "" if they have none.
std::string changes_of(const std::vector<const json*>& rows) {
  std::optional<double> low, high;
  for (const json* row : rows)
    if (const auto change = view::number(*row, "change")) {
      low = std::min(low.value_or(*change), *change);
      high = std::max(high.value_or(*change), *change);
    }
  if (!low)
    return "";
  return rows.size() == 1 || *low == *high ? ", change " + percent(low)
                                           : ", changes " + percent(low) + " to " + percent(high);
}

/// Unclear rows decide nothing: a line for each case and reason, until --verbose asks for all.
std::string unclear_text(const json& rows, const TextStyle& style) {
  if (style.verbose)
    return "";
  std::vector<UnclearRows> groups; // in order of appearance
  for (const json& row : rows) {
    if (view::text(row, "verdict") != "unclear")
      continue;
    const std::string name = view::text(row, "case"), reason = view::text(row, "reason");
    auto group = std::find_if(groups.begin(), groups.end(), [&](const UnclearRows& each) {
      return each.name == name && each.reason == reason;
    });
    if (group == groups.end())
      group = groups.insert(groups.end(), {name, reason, {}});
    group->rows.push_back(&row);
  }
  std::string out;
  for (const UnclearRows& group : groups)
    out += wrapped("unclear: " + group.name + ", " + counted(group.rows.size(), "row") +
                       changes_of(group.rows) + ": " + group.reason,
                   style.width, 9) +
           "\n";
  return out.empty() ? "" : out + "(--verbose lists them)\n\n";
}

std::string counts_text(const json& comparison) {
  std::vector<std::string> parts;
  const json& counts = view::member(comparison, "counts");
  for (const char* verdict : order)
    if (const auto count = view::number(counts, verdict))
      parts.push_back(fmt::format("{:.0f} {}", *count, verdict));
  return fmt::format("{}: {} (what counts: {:g}% and more; false alarms: {:g}% over all rows)\n",
                     counted(view::list(comparison, "rows").size(), "row"), join(parts, ", "),
                     view::number(comparison, "min_effect").value_or(0) * 100,
                     view::number(comparison, "alpha").value_or(0) * 100);
}

} // namespace

std::string comparison_text(const json& comparison, const TextStyle& style) {
  if (!comparison.is_object())
    return "";
  return "BASE: " + side_text(view::member(comparison, "base")) + "\n" +
         "NEW:  " + side_text(view::member(comparison, "new")) + "\n\n" +
         differences_text(view::list(comparison, "differences"), style) +
         rows_text(view::list(comparison, "rows"), style) +
         unclear_text(view::list(comparison, "rows"), style) + counts_text(comparison) +
         verdict_text(comparison) + "\n";
}

namespace {

constexpr std::size_t max_host_rows = 40; ///< without --verbose

std::string host_value(const json& value) {
  const std::optional<std::string> text = view::scalar(view::member(value, "value"));
  return text ? safe_text(*text) : "missing";
}

/// "5.15 on a, b and 3 more"
std::string host_value_with_hosts(const json& value) {
  constexpr std::size_t max_hosts = 4;
  std::vector<std::string> hosts;
  for (const json& host : view::list(value, "hosts"))
    if (hosts.size() < max_hosts)
      hosts.push_back(safe_text(view::scalar(host).value_or("?")));
  const auto count = static_cast<std::size_t>(view::number(value, "n_hosts").value_or(0));
  return host_value(value) + " on " + join(hosts, ", ") +
         (count > hosts.size() ? fmt::format(" and {} more", count - hosts.size()) : "");
}

} // namespace

std::string host_differences_text(const json& differences, const TextStyle& style) {
  if (!differences.is_object())
    return "";
  const auto size = [&differences](const char* key) {
    return static_cast<std::size_t>(view::number(differences, key).value_or(0));
  };
  const json& rows = view::list(differences, "differences");
  const std::string golden = view::text(differences, "golden");
  const std::string hosts =
      counted(size("n_hosts"), "host") + (golden.empty() ? "" : " compared with " + golden) + ": ";
  if (rows.empty())
    return hosts + "all " + counted(size("n_facts"), "fact") + " are the same\n";
  Table table({{"fact"}, {golden.empty() ? "of most hosts" : "golden"}, {"of others"}});
  const std::size_t shown =
      style.verbose ? rows.size() : std::min<std::size_t>(rows.size(), max_host_rows);
  for (std::size_t i = 0; i < shown; ++i) {
    const json& usual = view::member(rows[i], "usual");
    std::vector<std::string> others;
    for (const json& other : view::list(rows[i], "others"))
      others.push_back(host_value_with_hosts(other));
    if (const auto more = view::number(rows[i], "more_values"))
      others.push_back(fmt::format("{:.0f} more values", *more));
    table.add({view::text(rows[i], "fact"), usual.is_object() ? host_value(usual) : "-",
               join(others, "; ")});
  }
  const std::size_t left_out = rows.size() - shown + size("more_differences");
  return hosts +
         fmt::format("{} of {} differ\n", rows.size() + size("more_differences"),
                     counted(size("n_facts"), "fact")) +
         table.text(style) +
         (left_out > 0 ? fmt::format("... and {} more: --verbose or --json has them\n", left_out)
                       : "");
}

std::string thresholds_text(const json& thresholds, const TextStyle& style) {
  Table table({{"threshold"},
               {"rows", Align::right},
               {"missed", Align::right},
               {"worst", Align::right},
               {"verdict"},
               {"from"}});
  for (const json& threshold : thresholds) {
    const bool passed = view::member(threshold, "passed") == json(true);
    const auto worst = view::number(threshold, "worst");
    table.add({view::text(threshold, "expression"), view::text(threshold, "rows"),
               view::text(threshold, "failed"), worst ? view::decimal(*worst, 6) : "-",
               passed ? "passed" : "missed", view::text(threshold, "source")});
  }
  return table.empty() ? "" : table.text(style);
}

} // namespace shmemctl
