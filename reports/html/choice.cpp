#include "reports/html/choice.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "reports/compare/side.h"
#include "src/base/text.h"

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

/// What a report is of.
struct Subject {
  std::vector<std::string> hosts;
  std::string subcommand;
  Words asked;
};

Subject subject_of(const Report& report) {
  const Words command = runs_of(report).front().command;
  return {hosts_of(report), subcommand_of(command), what_was_asked(command)};
}

/// What tells whether one report stands for another.
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
  std::vector<std::size_t> places, all;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const std::vector<RunInfo> runs = runs_of(reports[i].report);
    all.push_back(i);
    if (!std::all_of(runs.begin(), runs.end(),
                     [&](const RunInfo& run) { return known.contains(identity_of(run)); }))
      places.push_back(i);
  }
  return places.empty() ? all : places;
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
  std::vector<std::size_t> places = not_of(baseline, reports);
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    const Report& report = reports[*place].report;
    Candidate candidate{subject_of(report), row_keys(report)};
    if (std::none_of(newer.begin(), newer.end(),
                     [&](const Candidate& one) { return stands_for(one, candidate); }))
      chosen.push_back(*place);
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

} // namespace shmemctl::html
