#include "reports/compare/merge.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "reports/json_view.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// Appends the items of `from`, with the index of their run.
template <class T>
void append(const std::vector<T>& from, int first_run, std::vector<T>& to) {
  for (T item : from) {
    item.run = first_run + item.run.value_or(0);
    to.push_back(std::move(item));
  }
}

/// Prefixes the run to a finding; findings of a merged report have that prefix already.
void append_findings(const Report& report, Findings& to) {
  const std::string run = prefix_of(runs_of(report).front());
  for (Finding finding : report.findings) {
    if (report.runs.empty())
      finding.message = run + finding.message;
    to.push_back(std::move(finding));
  }
}

void append_objects(const json& from, int first_run, json& to) {
  for (json object : from) {
    object["run"] = first_run + object.value("run", 0);
    to.push_back(std::move(object));
  }
}

/// The host without its numbers in a job, which may differ in another run.
json without_numbers(json host) {
  if (host.is_object())
    for (const char* key : {"nodes", "pes"})
      host.erase(key);
  return host;
}

/// Each host once, with its nodes and PEs if they are the same in all runs.
class HostList {
public:
  void add(const json& hosts) {
    for (const json& host : hosts) {
      const auto [known, is_new] = place_.try_emplace(without_numbers(host), hosts_.size());
      if (is_new)
        hosts_.push_back(host);
      else if (hosts_[known->second] != host)
        hosts_[known->second] = known->first;
    }
  }
  json take() { return std::move(hosts_); }

private:
  json hosts_ = json::array();
  std::map<json, std::size_t> place_; ///< place of each row by its fields without numbers
};

Finding left_out(const char* name) {
  return {"merge-left-out", Severity::info, name,
          std::string("the reports differ in their ") + name + ", so the merged one has none",
          std::string("read the ") + name + " in the single reports"};
}

Finding stands_with_runs(const char* name) {
  return {"merge-left-out", Severity::info, name,
          std::string("the reports differ in their ") + name + ", so it is with each run",
          std::string("read runs[].") + name + ", or look at the page: shmemctl report html"};
}

/// Takes topology and mapping out of the runs if all that have one agree; if not, adds a finding.
void share_nodes(Report& merged) {
  bool alike = true;
  for (const auto& [part, whole, name] :
       {std::tuple(&RunInfo::topology, &Report::topology, "topology"),
        std::tuple(&RunInfo::mapping, &Report::mapping, "mapping")}) {
    json value;
    bool differs = false;
    for (const RunInfo& run : merged.runs) {
      if (value.is_null())
        value = run.*part;
      differs = differs || (!(run.*part).is_null() && run.*part != value);
    }
    if (differs)
      merged.findings.push_back(stands_with_runs(name));
    else
      merged.*whole = std::move(value);
    alike = alike && !differs;
  }
  if (alike)
    for (RunInfo& run : merged.runs)
      run.topology = run.mapping = nullptr;
}

/// The value, if all reports that have one agree; null with a finding if they differ.
json common(const std::vector<LoadedReport>& reports, json Report::*part, const char* name,
            Findings& findings) {
  json value;
  for (const LoadedReport& loaded : reports) {
    const json& own = loaded.report.*part;
    if (own.is_null())
      continue;
    if (value.is_null())
      value = own;
    if (value == own)
      continue;
    findings.push_back(left_out(name));
    return {};
  }
  return value;
}

constexpr std::array hotspot_lists = {"ports", "groups", "signs", "unavailable"};

/// Whether these `hotspots` are of different hosts and were measured in the same way.
bool can_be_joined(const std::vector<const json*>& sections) {
  std::set<std::string> seen;
  for (const json* section : sections) {
    if (view::member(*section, "mode") != view::member(*sections.front(), "mode"))
      return false;
    std::set<std::string> hosts;
    for (const char* list : {"ports", "signs", "unavailable"})
      for (const json& item : view::list(*section, list))
        hosts.insert(view::text(item, "host"));
    for (const std::string& host : hosts)
      if (!seen.insert(host).second)
        return false;
  }
  return true;
}

/// Joins the sections of different hosts: their items are concatenated. Of single values, the
/// longest window, the fewest samples and the most expensive sampling; others are kept if they are
/// equal.
json joined_hotspots(const std::vector<const json*>& sections) {
  json joined = *sections.front();
  for (std::size_t i = 1; i < sections.size(); ++i) {
    const json& section = *sections[i];
    for (const char* list : hotspot_lists)
      for (const json& item : view::list(section, list))
        joined[list].push_back(item);
    if (const auto window_s = view::number(section, "window_s");
        window_s && *window_s > view::number(joined, "window_s").value_or(0)) {
      joined["window_s"] = *window_s;
      joined.erase("window_s_reason");
    }
    joined["samples"] = std::min(joined.at("samples"), section.at("samples"));
    if (const auto share = view::number(section, "sampling_core_share");
        share && *share > view::number(joined, "sampling_core_share").value_or(0))
      joined["sampling_core_share"] = *share;
    if (joined.at("thresholds") != section.at("thresholds"))
      joined["thresholds"] = "several";
    for (const char* key : {"interval_s", "command"})
      if (joined.contains(key) && view::member(section, key) != joined.at(key))
        joined.erase(key);
  }
  return joined;
}

json merged_hotspots(const std::vector<LoadedReport>& reports, Findings& findings) {
  std::vector<const json*> sections;
  for (const LoadedReport& loaded : reports)
    if (loaded.report.hotspots.is_object())
      sections.push_back(&loaded.report.hotspots);
  if (sections.empty())
    return {};
  if (std::all_of(sections.begin(), sections.end(),
                  [&](const json* section) { return *section == *sections.front(); }))
    return *sections.front();
  if (can_be_joined(sections))
    return joined_hotspots(sections);
  findings.push_back(left_out("hotspots"));
  return {};
}

Job job_of(const std::vector<RunInfo>& runs) {
  Job job = runs.front().job;
  for (const RunInfo& run : runs) {
    job.pes = std::max(job.pes, run.job.pes);
    job.nodes = std::max(job.nodes, run.job.nodes);
    job.bootstrap = job.bootstrap == run.job.bootstrap ? job.bootstrap : "several";
    job.launcher = job.launcher == run.job.launcher ? job.launcher : "several";
  }
  return job;
}

/// RFC 3339 times in UTC sort as text, up to fractions of a second.
void set_times(const std::vector<RunInfo>& runs, Report& merged) {
  for (const RunInfo& run : runs) {
    if (!run.started_at.empty() &&
        (merged.started_at.empty() || run.started_at < merged.started_at))
      merged.started_at = run.started_at;
    merged.finished_at = std::max(merged.finished_at, run.finished_at);
  }
}

/// Keeps the options that were the same in all runs.
void keep_common_options(const std::vector<LoadedReport>& reports, Report& merged) {
  merged.env = reports.front().report.env;
  for (const LoadedReport& loaded : reports)
    std::erase_if(merged.env, [&](const auto& option) {
      const auto found = loaded.report.env.find(option.first);
      return found == loaded.report.env.end() || found->second != option.second;
    });
}

} // namespace

std::string prefix_of(const RunInfo& run) {
  return join(run.hosts, "+") + (run.started_at.empty() ? "" : " at " + run.started_at) + ": ";
}

Report merge_reports(const std::vector<LoadedReport>& reports) {
  Report merged;
  HostList hosts;
  for (const LoadedReport& loaded : reports) {
    const Report& report = loaded.report;
    const auto first_run = static_cast<int>(merged.runs.size());
    const std::vector<RunInfo> runs = runs_of(report);
    for (RunInfo run : runs) {
      if (run.topology.is_null())
        run.topology = report.topology;
      if (run.mapping.is_null())
        run.mapping = report.mapping;
      merged.runs.push_back(std::move(run));
    }
    append(report.results, first_run, merged.results);
    append(report.checks, first_run, merged.checks);
    append(report.nic_counters, first_run, merged.nic_counters);
    append_findings(report, merged.findings);
    append_objects(report.moe, first_run, merged.moe);
    append_objects(report.processes, first_run, merged.processes);
    append(report.networks, first_run, merged.networks);
    append_objects(report.other_nodes, first_run, merged.other_nodes);
    hosts.add(report.hosts);
  }
  merged.hosts = hosts.take();
  merged.status =
      std::all_of(merged.runs.begin(), merged.runs.end(),
                  [](const RunInfo& run) { return run.status == ReportStatus::complete; })
          ? ReportStatus::complete
          : ReportStatus::incomplete;
  for (const RunInfo& run : merged.runs)
    merged.exit_code = std::max(merged.exit_code, run.exit_code);
  for (const LoadedReport& loaded : reports)
    merged.fail_on = std::min(merged.fail_on, loaded.report.fail_on);
  merged.job = job_of(merged.runs);
  set_times(merged.runs, merged);
  keep_common_options(reports, merged);
  share_nodes(merged);
  merged.simulation = common(reports, &Report::simulation, "simulation", merged.findings);
  merged.logs = common(reports, &Report::logs, "logs", merged.findings);
  merged.hotspots = merged_hotspots(reports, merged.findings);
  return merged;
}

} // namespace shmemctl
