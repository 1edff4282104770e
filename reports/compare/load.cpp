#include "reports/compare/load.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "reports/json_view.h"
#include "reports/report_file.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

namespace fs = std::filesystem;

bool is_folder(const std::string& path) {
  std::error_code ignored; // read_report() reports errors of files that cannot be examined
  return path != "-" && fs::is_directory(path, ignored);
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".json" && !is_folder(entry->path().string()))
      files.push_back(entry->path().string());
  if (error)
    throw input_error(folder, "", error.message(), "pass a readable directory");
  if (files.empty())
    throw input_error(folder, "", "no *.json file in this directory",
                      "pass a directory of reports");
  std::sort(files.begin(), files.end(),
            [](const std::string& a, const std::string& b) { return natural_less(a, b); });
  return files;
}

/// Checks the `run` of rows, checks, counters and MoE points. A report that is not merged has none.
void require_known_runs(const LoadedReport& loaded) {
  const Report& report = loaded.report;
  const auto count = static_cast<int>(report.runs.size());
  const auto require = [&](const std::optional<int>& run, const char* list) {
    if (run && (*run < 0 || *run >= count))
      throw input_error(loaded.path, std::string("/") + list,
                        "a row refers to item " + std::to_string(*run) +
                            " (counted from 0) of /runs, which has " +
                            counted(report.runs.size(), "item"),
                        "pass a report written by shmemctl");
  };
  for (const ResultRow& row : report.results)
    require(row.run, "results");
  for (const CheckRow& row : report.checks)
    require(row.run, "checks");
  for (const NicCounter& counter : report.nic_counters)
    require(counter.run, "nic_counters");
  for (const NetworkRow& network : report.networks)
    require(network.run, "networks");
  const auto require_of_each = [&](const nlohmann::json& objects, const char* list) {
    for (const nlohmann::json& object : objects)
      if (const auto run = view::number(object, "run"))
        require(static_cast<int>(*run), list);
  };
  require_of_each(report.moe, "moe");
  require_of_each(report.processes, "processes");
  require_of_each(report.other_nodes, "other_nodes");
}

LoadedReport load(const std::string& path) {
  LoadedReport loaded{path, read_report(path)};
  require_known_runs(loaded);
  return loaded;
}

void refuse_twice(const std::vector<LoadedReport>& reports) {
  std::map<std::string, std::string> seen;
  for (const LoadedReport& loaded : reports)
    for (const RunInfo& run : runs_of(loaded.report)) {
      const std::string identity = identity_of(run);
      if (identity.empty())
        continue;
      const auto [found, is_new] = seen.emplace(identity, loaded.path);
      if (!is_new)
        throw input_error(loaded.path, "",
                          "it contains the same run as " + printable(found->second) +
                              ", started at " + run.started_at,
                          "pass each run once");
    }
}

} // namespace

std::vector<LoadedReport> load_reports(const std::vector<std::string>& paths) {
  std::vector<LoadedReport> reports;
  for (const std::string& path : paths)
    for (const std::string& file : is_folder(path) ? files_of(path) : std::vector{path})
      reports.push_back(load(file));
  refuse_twice(reports);
  return reports;
}

std::vector<RunInfo> runs_of(const Report& report) {
  if (!report.runs.empty())
    return report.runs;
  RunInfo run;
  run.started_at = report.started_at;
  run.finished_at = report.finished_at;
  for (const nlohmann::json& host : report.hosts)
    if (const auto name = view::scalar(view::member(host, "name")))
      run.hosts.push_back(*name);
  std::sort(run.hosts.begin(), run.hosts.end());
  run.command = report.command;
  run.status = report.status;
  run.exit_code = report.exit_code;
  run.tool_version = report.tool.version;
  run.git_revision = report.tool.git_revision;
  run.job = report.job;
  return {run};
}

std::string identity_of(const RunInfo& run) {
  return run.started_at.empty()
             ? ""
             : run.started_at + "\n" + join(run.hosts, "\n") + "\n\n" + join(run.command, "\n");
}

std::size_t run_index(const Report& report, const std::optional<int>& run) {
  const auto index = static_cast<std::size_t>(run.value_or(0));
  return index < report.runs.size() ? index : 0;
}

} // namespace shmemctl
