#include "reports/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fmt/format.h>

#include "build_info.h"
#include "revision.h"
#include "src/base/hostile_characters.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// Sets `key`, or null with `<key>_reason`: the convention for what is unknown.
template <class T>
void set(json& object, const std::string& key, const std::optional<T>& value, const char* reason) {
  if (value) {
    object[key] = *value;
    return;
  }
  object[key] = nullptr;
  object[key + "_reason"] = reason;
}

/// JSON has no NaN and no infinity: such a number is unknown.
void set_number(json& object, const std::string& key, const std::optional<double>& value,
                const char* reason) {
  if (value && !std::isfinite(*value))
    set<double>(object, key, std::nullopt, "not a finite number");
  else
    set(object, key, value, reason);
}

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::string>(text);
}

void set_run(json& object, const std::optional<int>& run) {
  if (run)
    object["run"] = *run;
}

json tool_json(const ToolInfo& tool) {
  json object{{"name", "shmemctl"}, {"version", tool.version}, {"build", tool.build}};
  set(object, "git_revision", unless_empty(tool.git_revision), "built outside a checkout");
  set(object, "git_dirty", tool.git_dirty, "built outside a checkout");
  return object;
}

json stats_json(const Stats& stats) {
  json object{{"n", stats.n}};
  const char* const unmeasured = "not measured";
  set_number(object, "min", stats.min, unmeasured);
  set_number(object, "p50", stats.p50, unmeasured);
  set_number(object, "p90", stats.p90, unmeasured);
  set_number(object, "p99", stats.p99, stats.n < 100 ? "fewer than 100 samples" : unmeasured);
  set_number(object, "max", stats.max, unmeasured);
  set_number(object, "mean", stats.mean, unmeasured);
  set_number(object, "stddev", stats.stddev, unmeasured);
  if (stats.mad && std::isfinite(*stats.mad))
    object["mad"] = *stats.mad;
  return object;
}

json row_json(const ResultRow& row) {
  json object{{"case", row.case_name},
              {"params", row.params},
              {"unit", row.unit},
              {"verified", to_string(row.verified)},
              {"status", to_string(row.status)}};
  if (row.stats)
    object["stats"] = stats_json(*row.stats);
  set_number(object, "bandwidth_GBps", row.bandwidth_GBps, "not measured");
  const bool told = !row.limit_reason.empty();
  set_number(object, "link_fraction", row.link_fraction,
             told ? row.limit_reason.c_str() : "the link's limit is not known");
  set(object, "limited_by", row.limited_by,
      told ? row.limit_reason.c_str() : "the link is not known");
  if (row.rate_Mops && std::isfinite(*row.rate_Mops))
    object["rate_Mops"] = *row.rate_Mops;
  if (row.wire_GBps && std::isfinite(*row.wire_GBps))
    object["wire_GBps"] = *row.wire_GBps;
  if (!row.limit_note.empty())
    object["limit_note"] = row.limit_note;
  if (row.path)
    object["path"] = to_json(*row.path);
  if (!row.reason.empty())
    object["reason"] = row.reason;
  if (!row.samples.empty())
    object["samples"] = row.samples;
  set_run(object, row.run);
  return object;
}

json pin_json(const PinRow& row) {
  json object{{"pe", row.pe}, {"host", row.host}, {"cpus", row.cpus}, {"by", row.by}};
  if (row.numa)
    object["numa"] = *row.numa;
  return object;
}

json counter_json(const NicCounter& counter) {
  json object{{"host", counter.host},
              {"device", counter.device},
              {"port", counter.port},
              {"counter", counter.counter}};
  set(object, "before", counter.before, "not read");
  set(object, "after", counter.after, "not read");
  set(object, "delta", counter.delta,
      counter.reason.empty() ? "one reading is missing" : counter.reason.c_str());
  set_run(object, counter.run);
  return object;
}

json phase_json(const PhaseRow& row) {
  return {{"name", row.name}, {"time_ms", row.time_ms}, {"slowest_pe", row.slowest_pe}};
}

json connection_json(const ConnectionRow& row) {
  return {{"transport", row.transport},
          {"source", row.source},
          {"target", row.target},
          {"way", row.way}};
}

json check_json(const CheckRow& row) {
  json object{{"id", row.id},         {"title", row.title},       {"status", row.status},
              {"reason", row.reason}, {"evidence", row.evidence}, {"fix", row.fix}};
  if (!row.group.empty())
    object["group"] = row.group;
  set_run(object, row.run);
  return object;
}

json option_json(const OptionEntry& entry) {
  return {
      {"name", entry.name},        {"value", entry.value},           {"origin", entry.origin},
      {"from", entry.origin_name}, {"default", entry.default_value}, {"type", entry.type},
      {"doc", entry.doc},          {"valid", entry.problem.empty()}, {"problem", entry.problem}};
}

json finding_json(const Finding& finding) {
  return {{"id", finding.id},
          {"severity", to_string(finding.severity)},
          {"subject", finding.subject},
          {"message", finding.message},
          {"fix", finding.fix}};
}

json job_json(const Job& job) {
  return {{"pes", job.pes},
          {"nodes", job.nodes},
          {"bootstrap", job.bootstrap},
          {"launcher", job.launcher}};
}

json run_json(const RunInfo& run) {
  json object{{"hosts", run.hosts},
              {"command", run.command},
              {"status", to_string(run.status)},
              {"exit_code", static_cast<int>(run.exit_code)},
              {"tool_version", run.tool_version},
              {"job", job_json(run.job)}};
  set(object, "started_at", unless_empty(run.started_at), "not recorded");
  set(object, "finished_at", unless_empty(run.finished_at), "the run has not finished");
  set(object, "git_revision", unless_empty(run.git_revision), "built outside a checkout");
  return object;
}

template <class T, class ToJson>
json list_json(const std::vector<T>& items, ToJson convert) {
  json list = json::array();
  for (const T& item : items)
    list.push_back(convert(item));
  return list;
}

} // namespace

const char* to_string(ReportStatus status) {
  switch (status) {
  case ReportStatus::complete:
    return "complete";
  case ReportStatus::incomplete:
    return "incomplete";
  case ReportStatus::failed:
    return "failed";
  }
  return "incomplete";
}

const char* to_string(Verified verified) {
  switch (verified) {
  case Verified::passed:
    return "passed";
  case Verified::failed:
    return "failed";
  case Verified::unchecked:
    return "unchecked";
  }
  return "unchecked";
}

const char* to_string(RowStatus status) {
  switch (status) {
  case RowStatus::pass:
    return "pass";
  case RowStatus::fail:
    return "fail";
  case RowStatus::skip:
    return "skip";
  }
  return "skip";
}

ToolInfo tool_info() {
  ToolInfo tool;
  tool.version = SHMEMCTL_VERSION;
  const std::string revision = SHMEMCTL_GIT_REVISION;
  tool.git_revision = revision == "unknown" ? "" : revision;
  if (SHMEMCTL_GIT_DIRTY >= 0)
    tool.git_dirty = SHMEMCTL_GIT_DIRTY != 0;
  tool.build = {{"cuda", SHMEMCTL_CUDA_VERSION},
                {"compiler", SHMEMCTL_COMPILER},
                {"type", SHMEMCTL_BUILD_TYPE}};
  if (SHMEMCTL_HAVE_CUDA != 0)
    tool.build["cuda_architectures"] = SHMEMCTL_CUDA_ARCHITECTURES;
  if (const std::string sanitize = SHMEMCTL_SANITIZE; !sanitize.empty())
    tool.build["sanitize"] = sanitize;
  return tool;
}

json to_json(const Report& report) {
  json document{
      {"schema", {{"name", report_schema_name}, {"version", report_schema_version}}},
      {"tool", tool_json(report.tool)},
      {"command", report.command},
      {"status", to_string(report.status)},
      {"exit_code", static_cast<int>(report.exit_code)},
      {"job", job_json(report.job)},
      {"hosts", report.hosts},
      {"env", report.env},
      {"checks", list_json(report.checks, check_json)},
      {"results", list_json(report.results, row_json)},
      {"nic_counters", list_json(report.nic_counters, counter_json)},
      {"findings", list_json(report.findings, finding_json)},
  };
  set(document, "started_at", unless_empty(report.started_at), "not recorded");
  set(document, "finished_at", unless_empty(report.finished_at), "the run has not finished");
  if (!report.phases.empty())
    document["phases"] = list_json(report.phases, phase_json);
  if (!report.connections.empty())
    document["connections"] = list_json(report.connections, connection_json);
  if (const auto& measurement = report.measurement)
    document["measurement"] = {{"timer",
                                {{"clock", measurement->clock},
                                 {"resolution_ns", measurement->resolution_ns},
                                 {"cost_ns", measurement->cost_ns}}},
                               {"pinning", list_json(measurement->pinning, pin_json)}};
  if (!report.options.empty())
    document["options"] = list_json(report.options, option_json);
  if (!report.topology.is_null())
    document["topology"] = report.topology;
  if (!report.mapping.is_null())
    document["mapping"] = report.mapping;
  if (!report.moe.empty())
    document["moe"] = report.moe;
  if (!report.hotspots.is_null())
    document["hotspots"] = report.hotspots;
  if (!report.simulation.is_null())
    document["simulation"] = report.simulation;
  if (!report.runs.empty())
    document["runs"] = list_json(report.runs, run_json);
  if (!report.comparison.is_null())
    document["comparison"] = report.comparison;
  if (!report.thresholds.empty())
    document["thresholds"] = report.thresholds;
  return document;
}

std::string to_text(const json& document) {
  const std::string text = document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  // A document may be printed on a terminal. What that would act on stands in strings only (the
  // line ends and blanks between them are not text), and so can be written as \u009b.
  std::string out;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x7f) {
      ++at;
      continue;
    }
    const std::size_t length = std::max<std::size_t>(utf8_sequence_length(text, at), 1);
    if (const std::uint32_t character = utf8_character(text, at, length); is_hostile(character)) {
      out.append(text, copied, at - copied).append(fmt::format("\\u{:04x}", character));
      copied = at + length;
    }
    at += length;
  }
  return out.append(text, copied);
}

std::string utc_now() {
  std::timespec now{};
  std::timespec_get(&now, TIME_UTC);
  std::tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  std::array<char, 32> seconds{};
  std::strftime(seconds.data(), seconds.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 8> milliseconds{};
  std::snprintf(milliseconds.data(), milliseconds.size(), ".%03dZ",
                static_cast<int>(now.tv_nsec / 1000000 % 1000));
  return std::string(seconds.data()) + milliseconds.data();
}

} // namespace shmemctl
