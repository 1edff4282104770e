// Machines, tools and options that are not the same on both sides of a comparison.
#include <cmath>
#include <map>
#include <set>

#include "reports/compare/compare.h"
#include "reports/json_view.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// What is so on one side: name of a fact -> what the reports say about it, each once.
using Facts = std::map<std::string, std::set<std::string>>;

void note(Facts& facts, const std::string& what, const std::optional<std::string>& value) {
  if (value && !value->empty())
    facts[what].insert(*value);
}

std::optional<std::string> text_of(const json& object, const char* key) {
  return view::scalar(view::member(object, key));
}

/// "8 x NVIDIA H200, 1 x unknown"
std::string gpus_text(const json& gpus) {
  std::map<std::string, std::size_t> counts;
  for (const json& gpu : gpus)
    ++counts[text_of(gpu, "name").value_or("unknown")];
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts)
    parts.push_back(std::to_string(count) + " x " + name);
  return parts.empty() ? "none" : join(parts, ", ");
}

/// "mlx5_0/1, firmware 28.39, 400 Gb/s, x16 at 32 GT/s"
std::string hca_text(const json& hca) {
  std::string out = text_of(hca, "name").value_or("?");
  if (const auto port = text_of(hca, "port"))
    out += "/" + *port;
  if (const auto firmware = text_of(hca, "firmware"))
    out += ", firmware " + *firmware;
  if (const auto rate = text_of(hca, "rate_Gbps"))
    out += ", " + *rate + " Gb/s";
  if (const auto width = text_of(hca, "link_width"))
    out += ", x" + *width;
  if (const auto speed = text_of(hca, "link_speed_GTps"))
    out += " at " + *speed + " GT/s";
  return out;
}

void note_host(const json& host, Facts& facts) {
  note(facts, "host", text_of(host, "name"));
  note(facts, "kernel", text_of(host, "kernel"));
  note(facts, "CPU model", text_of(view::member(host, "cpus"), "model"));
  note(facts, "GPUs", gpus_text(view::list(host, "gpus")));
  for (const json& hca : view::list(host, "hcas"))
    note(facts, "HCA", hca_text(hca));
  const json& versions = view::member(host, "versions");
  if (versions.is_object())
    for (const auto& [name, version] : versions.items())
      note(facts, "version of " + name, view::scalar(version).value_or("absent"));
}

void note_topology(const json& topology, Facts& facts) {
  const json& distances = view::member(topology, "distances");
  const json& labels = view::list(distances, "labels");
  const json& matrix = view::list(distances, "matrix");
  for (std::size_t i = 0; i < matrix.size() && i < labels.size(); ++i) {
    std::vector<std::string> cells;
    for (const json& cell : matrix[i])
      cells.push_back(view::scalar(cell).value_or("?"));
    note(facts, "distances of " + view::scalar(labels[i]).value_or("?"), join(cells, " "));
  }
}

void note_mapping(const json& mapping, Facts& facts) {
  for (const json& pe : view::list(mapping, "pes")) {
    std::vector<std::string> nics;
    for (const json& nic : view::list(pe, "nics"))
      nics.push_back(text_of(nic, "device").value_or("?") + "/" +
                     text_of(nic, "port").value_or("?"));
    note(facts, "NICs of PE " + text_of(pe, "pe").value_or("?"),
         nics.empty() ? "none" : join(nics, ", "));
  }
}

Facts facts_of(const std::vector<LoadedReport>& reports) {
  Facts facts;
  for (const LoadedReport& loaded : reports) {
    const Report& report = loaded.report;
    for (const json& host : report.hosts)
      note_host(host, facts);
    note_topology(report.topology, facts);
    note_mapping(report.mapping, facts);
    for (const auto& [name, value] : report.env)
      note(facts, "option " + name, value);
    for (const RunInfo& run : runs_of(report)) {
      note(facts, "shmemctl",
           run.tool_version + (run.git_revision.empty() ? "" : " (" + run.git_revision + ")"));
      note(facts, "PEs", std::to_string(run.job.pes));
      note(facts, "nodes", std::to_string(run.job.nodes));
      note(facts, "launcher", run.job.launcher);
      note(facts, "bootstrap", run.job.bootstrap);
      if (run.status != ReportStatus::complete)
        note(facts, "runs that did not complete",
             loaded.path + (run.started_at.empty() ? "" : " of " + run.started_at));
    }
    if (report.measurement)
      note(facts, "clock", report.measurement->clock);
  }
  return facts;
}

} // namespace

std::vector<Difference> differences_between(const std::vector<LoadedReport>& base,
                                            const std::vector<LoadedReport>& other) {
  const Facts before = facts_of(base), after = facts_of(other);
  static const std::set<std::string> none;
  const auto look_up = [](const Facts& facts, const std::string& what) -> const auto& {
    const auto found = facts.find(what);
    return found == facts.end() ? none : found->second;
  };
  std::set<std::string> names;
  for (const Facts* facts : {&before, &after})
    for (const auto& [what, values] : *facts)
      names.insert(what);
  std::vector<Difference> differences;
  for (const std::string& what : names) {
    const auto &old_values = look_up(before, what), &new_values = look_up(after, what);
    if (old_values != new_values)
      differences.push_back(
          {what, {old_values.begin(), old_values.end()}, {new_values.begin(), new_values.end()}});
  }
  return differences;
}

} // namespace shmemctl
