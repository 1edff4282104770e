// What a page shows, and in which order.
#include "reports/html/page_model.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "reports/compare/compare.h"
#include "reports/html/blocks.h"
#include "reports/html/headline.h"
#include "reports/html/sections.h"
#include "reports/json_view.h"
#include "reports/table.h"
#include "reports/text.h"
#include "src/base/text.h"
#include "src/base/xml_text.h"

namespace shmemctl::html {

namespace {

using Words = std::vector<std::string>;

/// "bench put get": the words before the first flag.
std::string subcommand_of(const Words& command) {
  Words words;
  for (std::size_t i = 1; i < command.size() && !starts_with(command[i], "-"); ++i)
    words.push_back(command[i]);
  return join(words, " ");
}

/// A command line without the program and the files that it writes.
Words what_was_asked(const Words& command) {
  static constexpr std::array files = {"--json", "--csv", "--record", "--output", "-o"};
  Words words;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    const auto is_file = [&word](const std::string& flag) {
      return word == flag || starts_with(word, flag + "=");
    };
    if (std::any_of(files.begin(), files.end(), is_file))
      i += word.find('=') == std::string::npos ? 1 : 0;
    else if (word != "--force")
      words.push_back(word);
  }
  return words;
}

/// What a report describes.
struct Subject {
  std::vector<std::string> hosts;
  std::string subcommand;
  Words asked;
};

Subject subject_of(const Report& report) {
  const Words command = runs_of(report).front().command;
  return {hosts_of(report), subcommand_of(command), what_was_asked(command)};
}

/// Decides whether one report supersedes another.
struct Candidate {
  Subject of;
  std::set<std::string> rows;
};

bool stands_for(const Candidate& newer, const Candidate& older) {
  if (newer.of.hosts != older.of.hosts || newer.of.subcommand != older.of.subcommand)
    return false;
  return newer.of.asked == older.of.asked ||
         (!older.rows.empty() && std::includes(newer.rows.begin(), newer.rows.end(),
                                               older.rows.begin(), older.rows.end()));
}

std::set<std::string> identities_of(const std::vector<LoadedReport>& reports) {
  std::set<std::string> identities;
  for (const LoadedReport& loaded : reports)
    for (const RunInfo& run : runs_of(loaded.report))
      identities.insert(identity_of(run));
  identities.erase("");
  return identities;
}

std::vector<std::size_t> not_of(const std::vector<LoadedReport>& baseline,
                                const std::vector<LoadedReport>& reports) {
  const std::set<std::string> known = identities_of(baseline);
  std::vector<std::size_t> indices, all;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const std::vector<RunInfo> runs = runs_of(reports[i].report);
    all.push_back(i);
    if (!std::all_of(runs.begin(), runs.end(),
                     [&](const RunInfo& run) { return known.contains(identity_of(run)); }))
      indices.push_back(i);
  }
  return indices.empty() ? all : indices;
}

} // namespace

std::vector<std::string> hosts_of(const Report& report) {
  std::set<std::string> names;
  for (const RunInfo& run : runs_of(report))
    names.insert(run.hosts.begin(), run.hosts.end());
  return {names.begin(), names.end()};
}

std::vector<std::size_t> reports_to_show(const std::vector<LoadedReport>& reports,
                                         const std::vector<LoadedReport>& baseline) {
  std::vector<std::size_t> chosen;
  std::vector<Candidate> newer;
  std::vector<std::size_t> indices = not_of(baseline, reports);
  for (auto index = indices.rbegin(); index != indices.rend(); ++index) {
    const Report& report = reports[*index].report;
    Candidate candidate{subject_of(report), row_keys(report)};
    if (std::none_of(newer.begin(), newer.end(),
                     [&](const Candidate& one) { return stands_for(one, candidate); }))
      chosen.push_back(*index);
    newer.push_back(std::move(candidate));
  }
  return {chosen.rbegin(), chosen.rend()};
}

std::vector<Shown> shown_of(const std::vector<LoadedReport>& reports) {
  std::set<std::vector<std::string>> hosts;
  std::set<std::string> commands;
  std::map<std::pair<std::vector<std::string>, std::string>, int> alike;
  std::vector<Subject> subjects;
  for (const LoadedReport& loaded : reports) {
    const Subject& one = subjects.emplace_back(subject_of(loaded.report));
    hosts.insert(one.hosts);
    commands.insert(join(one.asked, " "));
    ++alike[{one.hosts, one.subcommand}];
  }
  std::vector<Shown> shown;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const Subject& one = subjects[i];
    std::vector<std::string> words;
    if (hosts.size() > 1)
      words.push_back(join(one.hosts, "+"));
    if (commands.size() > 1)
      words.push_back(alike[{one.hosts, one.subcommand}] > 1 ? join(one.asked, " ")
                                                             : one.subcommand);
    shown.push_back({&reports[i], join(words, " ")});
  }
  return shown;
}

using nlohmann::json;

namespace {

/// Trends match rows in the same way as the comparison with the baseline.
bool has_trend_by_host(const PageInput& input, const std::vector<std::size_t>& shown) {
  if (input.baseline.empty())
    return has_several_hosts(input.reports);
  HostSets hosts;
  for (const std::size_t index : shown)
    for (const RunInfo& run : runs_of(input.reports[index].report))
      hosts.insert(run.hosts);
  return matches_by_host(host_sets(input.baseline), hosts);
}

json facts_of(const std::vector<Shown>& shown, std::size_t n_reports) {
  const Report& last = shown.back().report();
  std::set<std::string> hosts;
  for (const Shown& one : shown)
    for (const std::string& host : hosts_of(one.report()))
      hosts.insert(host);
  constexpr std::size_t max_names = 8;
  std::string names = join(
      {hosts.begin(),
       std::next(hosts.begin(), static_cast<std::ptrdiff_t>(std::min(hosts.size(), max_names)))},
      ", ");
  if (hosts.size() > max_names)
    names += " and " + std::to_string(hosts.size() - max_names) + " more";
  json facts = json::array();
  const auto add = [&facts](const char* name, const std::string& value) {
    if (!value.empty())
      facts.push_back({name, safe_text(value)});
  };
  add(hosts.size() == 1 ? "host" : "hosts", names);
  add("started", last.started_at);
  add("job", counted(static_cast<std::size_t>(std::max(last.job.pes, 0)), "PE") + ", " +
                 counted(static_cast<std::size_t>(std::max(last.job.nodes, 0)), "node"));
  add("command", join(last.command, " "));
  add("shmemctl",
      last.tool.version + (last.tool.git_revision.empty() ? "" : " " + last.tool.git_revision));
  if (n_reports > 1)
    add("reports", std::to_string(n_reports) + ", shown: " + std::to_string(shown.size()));
  for (const Shown& one : shown)
    if (shown.size() <= max_names)
      add(one.label.empty() ? "summary" : "",
          labelled(one.label, std::string(trim(summary_text(one.report())))));
  return facts;
}

} // namespace

bool CellBudget::take(std::size_t wanted) {
  if (wanted > cells) {
    ++left_out;
    return false;
  }
  cells -= wanted;
  return true;
}

std::string labelled(const std::string& label, const std::string& text) {
  return label.empty() ? text : text.empty() ? label : label + ": " + text;
}

json page_model(PageInput input) {
  std::stable_sort(input.reports.begin(), input.reports.end(),
                   [](const LoadedReport& a, const LoadedReport& b) {
                     return a.report.started_at < b.report.started_at;
                   });
  const std::vector<std::size_t> indices = reports_to_show(input.reports, input.baseline);
  json trend = trend_section(input.reports, has_trend_by_host(input, indices));
  const std::size_t n_reports = input.reports.size();
  std::vector<LoadedReport> current;
  for (const std::size_t index : indices)
    current.push_back(std::move(input.reports[index]));
  const std::vector<Shown> shown = shown_of(current);
  json comparison;
  Findings compared;
  for (const Shown& one : shown)
    if (one.report().comparison.is_object())
      comparison = one.report().comparison;
  if (!input.baseline.empty()) {
    const Comparison against = compare_reports(input.baseline, current, {});
    comparison = comparison_json(against);
    compared = comparison_findings(against, false);
  }
  CellBudget budget;
  json sections = json::array();
  const auto add = [&sections](json section) {
    if (!section.is_null())
      sections.push_back(std::move(section));
  };
  add(findings_section(shown, compared));
  add(comparison_section(comparison));
  add(simulation_section(shown));
  add(topology_section(shown));
  add(nics_section(shown, budget));
  add(pairs_section(shown, budget));
  add(moe_section(shown, budget));
  add(sweeps_section(current, input.baseline));
  add(std::move(trend));
  add(results_section(shown));
  add(machine_section(shown));
  json model{{"title", "shmemctl report"},
             {"verdict", headline(shown, compared)},
             {"facts", facts_of(shown, n_reports)},
             {"sections", std::move(sections)}};
  if (budget.left_out > 0)
    model["note"] = counted(budget.left_out, "matrix view") +
                    " left out to keep this page small: the reports have them.";
  return model;
}

namespace {

std::string policy() {
  const auto source = [](const std::string& digits) {
    return " 'sha256-" + base64_of_hex(digits) + "'";
  };
  // An empty icon keeps browsers from requesting one.
  return "default-src 'none'; script-src" + source(chart_library_sha256()) +
         source(page_script_sha256()) + "; style-src" + source(page_style_sha256()) +
         "; img-src data:; base-uri 'none'; form-action 'none'";
}

} // namespace

std::string base64_of_hex(const std::string& digits) {
  static const char* const letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto value = [](char c) {
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  std::string out;
  // Six digits are three bytes, and four letters.
  for (std::size_t at = 0; at < digits.size(); at += 6) {
    const std::size_t bytes = std::min<std::size_t>(digits.size() - at, 6) / 2;
    unsigned group = 0;
    for (std::size_t i = 0; i < 6; ++i)
      group = group << 4 | (i < 2 * bytes ? value(digits[at + i]) : 0);
    for (std::size_t i = 0; i < 4; ++i)
      out += i <= bytes ? letters[group >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

std::string script_json(const json& value) {
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (const char c : text)
    switch (c) {
    case '<':
      out += "\\u003c";
      break;
    case '>':
      out += "\\u003e";
      break;
    case '&':
      out += "\\u0026";
      break;
    default:
      out += c;
    }
  return out;
}

std::string write_html(const json& model) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"" +
      policy() +
      "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>shmemctl report</title>\n<style>";
  page += page_style() + "</style>\n</head>\n<body>\n<header id=\"top\"></header>\n"
                         "<nav id=\"contents\"></nav>\n<main id=\"page\"></main>\n"
                         "<noscript>This page draws its data with a script, which is turned off "
                         "here.</noscript>\n<footer><details><summary>Licence of the charting "
                         "library</summary><pre>";
  page += xml_escape(chart_licence()) + "</pre></details></footer>\n";
  page += "<script type=\"application/json\" id=\"model\">" + script_json(model) + "</script>\n";
  page += "<script>" + chart_library() + "</script>\n<script>" + page_script() + "</script>\n";
  return page + "</body>\n</html>\n";
}

} // namespace shmemctl::html
