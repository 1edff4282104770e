#include "src/instruments/gather/gather.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "src/base/error.h"
#include "src/base/file_tree.h"
#include "src/base/finding.h"
#include "src/base/input.h"
#include "src/base/report_schema.h"
#include "src/base/secret.h"
#include "src/instruments/doctor/libraries.h"
#include "src/instruments/gather/anonymizer.h"
#include "src/instruments/gather/recorded_files.h"
#include "src/instruments/gather/recorder.h"
#include "src/instruments/inspect/inspect.h"
#include "src/instruments/inspect/rdma_resources.h"
#include "src/instruments/libraries/libraries.h"
#include "src/instruments/libraries/versions.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/writers/writer.h"

namespace shmemctl::gather {

namespace {

using nlohmann::json;

constexpr const char* node_path = "/shmemctl/node.json";
constexpr const char* results_path = "/shmemctl/results.json";
constexpr int results_format = 1;

constexpr CheckStatus statuses[] = {CheckStatus::pass, CheckStatus::warning, CheckStatus::fail,
                                    CheckStatus::skipped};

Error damaged(const std::string& subject, const std::string& problem) {
  return Error(ExitCode::usage, subject, "read", problem,
               "record the node again with shmemctl gather");
}

std::string text_of(const json& object, const char* key, const std::string& subject) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_string())
    throw damaged(subject, std::string(results_path) + " has no string \"" + key + "\"");
  return found->get<std::string>();
}

const json& member(const json& object, const char* key, bool list, const std::string& subject) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() ||
      (list ? !found->is_array() : !found->is_object()))
    throw damaged(subject, std::string(results_path) + " has no member \"" + key + "\"");
  return *found;
}

json finding_json(const Finding& finding) {
  return {{"id", finding.id},
          {"severity", to_string(finding.severity)},
          {"subject", finding.subject},
          {"message", finding.message},
          {"fix", finding.fix}};
}

Finding parse_finding(const json& object, const std::string& subject) {
  const auto severity = parse_severity(text_of(object, "severity", subject));
  if (!severity)
    throw damaged(subject, std::string(results_path) + " has an unknown severity");
  return {text_of(object, "id", subject), *severity, text_of(object, "subject", subject),
          text_of(object, "message", subject), text_of(object, "fix", subject)};
}

CheckResult parse_check(const json& object, const std::string& subject) {
  const std::string name = text_of(object, "status", subject);
  const auto status = std::find_if(std::begin(statuses), std::end(statuses),
                                   [&name](CheckStatus each) { return name == to_string(each); });
  if (status == std::end(statuses))
    throw damaged(subject, std::string(results_path) + " has an unknown status");
  return {*status, text_of(object, "reason", subject), text_of(object, "evidence", subject),
          text_of(object, "fix", subject)};
}

/// Reads a machine twice: directly, and from its recorded files.
class Gatherer {
public:
  Gatherer(const Sysroot& sysroot, const GatherRequest& request)
      : sysroot_(sysroot), names_(random_secret()),
        recorder_(sysroot, request.keep_names ? nullptr : &names_), request_(request) {}

  Gathered run(const std::function<void(const std::string&)>& phase) {
    phase("reading the machine under " + sysroot_.root());
    const Node node =
        sysroot_.live() ? read_machine(sysroot_, request_.nvml_library) : read_machine(sysroot_);
    phase("recording files");
    recorder_.record();
    if (sysroot_.live())
      recorder_.add(node_path, recorder_.text(node_text(node)));
    record_rdma_resources();
    for (const auto& [name, value] : request_.environment)
      if (recorded_variable(name))
        results_.environment.emplace(name, recorder_.text(value));

    const Sysroot recorded(std::make_shared<const FileTree>(recorder_.tree()), "archive");
    phase("running doctor's checks");
    compare_checks(node, recorded);
    phase("looking into processes");
    compare_findings(recorded);
    recorder_.add(results_path, results_text(results_));

    phase("compressing");
    Gathered gathered;
    gathered.archive = write_archive(recorder_.tree());
    for (const auto& [path, entry] : recorder_.tree().entries())
      gathered.files += entry.kind == FileEntry::Kind::file ? 1 : 0;
    gathered.processes = recorder_.processes();
    gathered.results = results_.checks.size() + results_.findings.size();
    gathered.left_out = recorder_.left_out();
    return gathered;
  }

private:
  /// What `inspect` gets from the kernel by netlink, and no file has.
  void record_rdma_resources() {
    using inspect::RdmaResource;
    const inspect::RdmaResources resources = inspect::read_rdma_resources(sysroot_);
    if (!resources.known)
      return;
    for (const RdmaResource kind : {RdmaResource::queue_pair, RdmaResource::completion_queue,
                                    RdmaResource::memory_region, RdmaResource::connection})
      if (std::find(resources.not_listed.begin(), resources.not_listed.end(), kind) ==
          resources.not_listed.end())
        recorder_.add(inspect::rdma_record_path(kind),
                      recorder_.text(inspect::rdma_text(kind, resources)));
  }

  static std::string node_text(const Node& node) {
    return json({{"schema", {{"name", report_schema_name}, {"version", report_schema_version}}},
                 {"topology", topology_json(node)}})
        .dump(1, ' ', false, json::error_handler_t::replace);
  }

  CheckResult replaced(const CheckResult& result) {
    return {result.status, recorder_.text(result.reason), recorder_.text(result.evidence),
            recorder_.text(result.fix)};
  }

  void compare_checks(const Node& node, const Sysroot& recorded) {
    const auto there = run_checks({sysroot_, node, request_.environment, nullptr}, {}, {});
    const auto of_archive = recorded_node(recorded);
    const Node again = of_archive ? *of_archive : read_machine(recorded);
    const auto here = run_checks({recorded, again, results_.environment, nullptr}, {}, {});
    for (std::size_t i = 0; i < there.size() && i < here.size(); ++i) {
      CheckResult result = replaced(there[i].result);
      const CheckResult& other = here[i].result;
      if (result.status != other.status || result.reason != other.reason || result.fix != other.fix)
        results_.checks.emplace(there[i].check->id, std::move(result));
    }
  }

  void compare_findings(const Sysroot& recorded) {
    Findings there = inspect::Inspector(sysroot_).inspect({}, 0).findings;
    for (Finding& finding : there)
      finding = {finding.id, finding.severity, recorder_.text(finding.subject),
                 recorder_.text(finding.message), recorder_.text(finding.fix)};
    const Findings here = inspect::Inspector(recorded).inspect({}, 0).findings;
    std::set<std::string> ids;
    for (const Findings& findings : {there, here})
      for (const Finding& finding : findings)
        ids.insert(finding.id);
    for (const std::string& id : ids) {
      const auto of_id = [&id](const Findings& findings) {
        Findings chosen;
        std::copy_if(findings.begin(), findings.end(), std::back_inserter(chosen),
                     [&id](const Finding& finding) { return finding.id == id; });
        return chosen;
      };
      Findings live = of_id(there);
      if (live == of_id(here))
        continue;
      results_.finding_ids.insert(id);
      results_.findings.insert(results_.findings.end(), live.begin(), live.end());
    }
  }

  const Sysroot& sysroot_;
  Anonymizer names_;
  Recorder recorder_;
  const GatherRequest& request_;
  LiveResults results_;
};

} // namespace

Gathered gather(const Sysroot& sysroot, const GatherRequest& request,
                const std::function<void(const std::string&)>& phase) {
  return Gatherer(sysroot, request).run(phase);
}

std::optional<Node> recorded_node(const Sysroot& sysroot) {
  if (sysroot.live() || !sysroot.exists(node_path))
    return std::nullopt;
  Node node = read_report(sysroot.read(node_path, max_input_bytes).value_or(""), sysroot.root());
  node.format = "sysroot"; // its files are those of a machine, not a report
  return node;
}

std::optional<LiveResults> recorded_results(const Sysroot& sysroot) {
  if (sysroot.live() || !sysroot.exists(results_path))
    return std::nullopt;
  return parse_results(sysroot.read(results_path, max_input_bytes).value_or(""), sysroot.root());
}

std::optional<RecordedNvshmem> recorded_nvshmem(const Sysroot& sysroot) {
  if (sysroot.live())
    return std::nullopt;
  std::map<std::array<int, 3>, std::string> releases; // release -> origin
  const auto add = [&releases](const libraries::Libraries& all, const std::string& who) {
    for (const auto& library : all)
      if (std::string_view(library->kind->id) == "nvshmem-host")
        if (const auto release = libraries::release_of(library->version))
          releases.emplace(*release, who);
  };
  for (const inspect::Inspected& one : inspect::Inspector(sysroot).inspect({}, 0).processes)
    add(one.libraries, fmt::format("loaded by PID {}", one.process.pid));
  if (releases.empty()) {
    const auto results = recorded_results(sysroot);
    const Environment environment = results ? results->environment : Environment();
    const Node no_devices;
    add(doctor::communication_libraries({sysroot, no_devices, environment}), "installed");
  }
  if (releases.empty())
    return std::nullopt;
  if (releases.size() == 1)
    return RecordedNvshmem{releases.begin()->first, releases.begin()->second};
  std::string list;
  for (const auto& [release, who] : releases)
    list += fmt::format("{}{}.{}.{}", list.empty() ? "" : ", ", release[0], release[1], release[2]);
  return RecordedNvshmem{std::nullopt, list};
}

Findings with_recorded(Findings findings, const LiveResults& results) {
  std::erase_if(findings, [&results](const Finding& finding) {
    return results.finding_ids.count(finding.id) != 0;
  });
  findings.insert(findings.end(), results.findings.begin(), results.findings.end());
  return findings;
}

std::string results_text(const LiveResults& results) {
  json checks = json::object(), findings = json::array();
  for (const auto& [id, result] : results.checks)
    checks[id] = {{"status", to_string(result.status)},
                  {"reason", result.reason},
                  {"evidence", result.evidence},
                  {"fix", result.fix}};
  for (const Finding& finding : results.findings)
    findings.push_back(finding_json(finding));
  return json({{"format", results_format},
               {"environment", results.environment},
               {"checks", std::move(checks)},
               {"finding_ids", results.finding_ids},
               {"findings", std::move(findings)}})
             .dump(1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

LiveResults parse_results(const std::string& text, const std::string& subject) {
  const json document = parse_json(text, subject);
  LiveResults results;
  if (!document.is_object() || document.value("format", json()) != results_format)
    throw damaged(subject, std::string(results_path) + " is of another format");
  for (const auto& [name, value] : member(document, "environment", false, subject).items())
    if (value.is_string())
      results.environment.emplace(name, value.get<std::string>());
  for (const auto& [id, check] : member(document, "checks", false, subject).items())
    results.checks.emplace(id, parse_check(check, subject));
  for (const json& id : member(document, "finding_ids", true, subject))
    if (id.is_string())
      results.finding_ids.insert(id.get<std::string>());
  for (const json& finding : member(document, "findings", true, subject))
    results.findings.push_back(parse_finding(finding, subject));
  return results;
}

} // namespace shmemctl::gather
