// The report: its rows, what identifies them, and its JSON.
#include "reports/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "build_info.h"
#include "reports/report_file.h"
#include "reports/validate.h"
#include "revision.h"
#include "src/base/cuda_release.h"
#include "src/base/finding.h"
#include "src/base/json_values.h"
#include "src/base/options.h"
#include "src/base/text.h"

namespace shmemctl {

using nlohmann::json;

namespace {

std::string end_text(const PathEnd& end) {
  std::string text = "PE " + std::to_string(end.pe) + " (" + end.host;
  if (end.node)
    text += ", node " + std::to_string(*end.node);
  return text + ")";
}

void put_end(const char* prefix, const std::optional<PathEnd>& end, json& object) {
  if (!end)
    return;
  const std::string name = prefix;
  object[name + "_pe"] = end->pe;
  object[name + "_host"] = end->host;
  if (end->node)
    object[name + "_node"] = *end->node;
}

std::optional<PathEnd> end_from(const char* prefix, const json& object) {
  const std::string name = prefix;
  if (!object.contains(name + "_pe"))
    return std::nullopt;
  PathEnd end{require_whole_number<int>(object.at(name + "_pe")), object.value(name + "_host", "")};
  if (object.contains(name + "_node"))
    end.node = require_whole_number<int>(object.at(name + "_node"));
  return end;
}

} // namespace

std::string to_text(const RowPath& path) {
  std::string text;
  if (path.first && path.second)
    text = end_text(*path.first) + " -> " + end_text(*path.second);
  const auto add = [&text](const std::string& words) { text += (text.empty() ? "" : " ") + words; };
  if (!path.transports.empty())
    add("by " + join(path.transports, ", "));
  if (!path.nics.empty())
    add(path.transports.size() > 1 ? "(" + join(path.nics, ", ") + ")" : join(path.nics, ", "));
  return text;
}

json to_json(const RowPath& path) {
  json object{{"transports", path.transports}, {"nics", path.nics}};
  put_end("first", path.first, object);
  put_end("second", path.second, object);
  return object;
}

RowPath row_path_from_json(const json& object) {
  RowPath path;
  path.first = end_from("first", object);
  path.second = end_from("second", object);
  path.transports = object.at("transports").get<std::vector<std::string>>();
  path.nics = object.at("nics").get<std::vector<std::string>>();
  return path;
}

namespace {

/// Sets `key`, or null with `<key>_reason`: the convention for unknown values.
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

void set_time(json& object, const std::optional<double>& time_s) {
  if (time_s && std::isfinite(*time_s) && *time_s >= 0)
    object["time_s"] = *time_s;
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
  if (stats.p999 && std::isfinite(*stats.p999))
    object["p999"] = *stats.p999;
  return object;
}

json histogram_json(const std::vector<HistogramBin>& bins) {
  json list = json::array();
  for (const HistogramBin& bin : bins)
    list.push_back({{"from", bin.from}, {"to", bin.to}, {"count", bin.count}});
  return list;
}

json windows_json(const RowWindows& windows) {
  json object{{"length_s", windows.length_s}, {"count", windows.count}};
  if (windows.min_GBps && std::isfinite(*windows.min_GBps))
    object["min_GBps"] = *windows.min_GBps;
  if (windows.max_us && std::isfinite(*windows.max_us))
    object["max_us"] = *windows.max_us;
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
  const bool known = !row.limit_reason.empty();
  set_number(object, "link_fraction", row.link_fraction,
             known ? row.limit_reason.c_str() : "the limit of the link is unknown");
  set(object, "limited_by", row.limited_by,
      known ? row.limit_reason.c_str() : "the link is unknown");
  if (row.rate_Mops && std::isfinite(*row.rate_Mops))
    object["rate_Mops"] = *row.rate_Mops;
  if (row.wire_GBps && std::isfinite(*row.wire_GBps))
    object["wire_GBps"] = *row.wire_GBps;
  if (row.counted_GBps && std::isfinite(*row.counted_GBps))
    object["counted_GBps"] = *row.counted_GBps;
  if (row.algbw_GBps && std::isfinite(*row.algbw_GBps))
    object["algbw_GBps"] = *row.algbw_GBps;
  if (row.busbw_GBps && std::isfinite(*row.busbw_GBps))
    object["busbw_GBps"] = *row.busbw_GBps;
  if (!row.cores.empty())
    object["cores"] = row.cores;
  if (row.windows)
    object["windows"] = windows_json(*row.windows);
  if (!row.histogram.empty())
    object["histogram"] = histogram_json(row.histogram);
  if (!row.limit_note.empty())
    object["limit_note"] = row.limit_note;
  set_time(object, row.time_s);
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
          {"way", row.path}};
}

json check_json(const CheckRow& row) {
  json object{{"id", row.id},         {"title", row.title},       {"status", row.status},
              {"reason", row.reason}, {"evidence", row.evidence}, {"fix", row.fix}};
  if (!row.group.empty())
    object["group"] = row.group;
  set_time(object, row.time_s);
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
  json object{{"pes", job.pes},
              {"nodes", job.nodes},
              {"bootstrap", job.bootstrap},
              {"launcher", job.launcher}};
  if (!job.command.empty())
    object["command"] = job.command;
  return object;
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
  if (!run.topology.is_null())
    object["topology"] = run.topology;
  if (!run.mapping.is_null())
    object["mapping"] = run.mapping;
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
  const std::string glibc = SHMEMCTL_GLIBC;
  tool.build["glibc"] =
      glibc.empty() ? std::to_string(__GLIBC__) + "." + std::to_string(__GLIBC_MINOR__) : glibc;
  if (SHMEMCTL_HAVE_CUDA != 0) {
    tool.build["cuda_architectures"] = SHMEMCTL_CUDA_ARCHITECTURES;
    const auto toolkit = parse_integer(split(SHMEMCTL_CUDA_VERSION, '.').front());
    tool.build["cuda_driver"] =
        std::string(oldest_driver_branch(static_cast<int>(toolkit.value_or(0)))) + " or newer";
  }
  if (const std::string sanitize = SHMEMCTL_SANITIZE; !sanitize.empty())
    tool.build["sanitize"] = sanitize;
  return tool;
}

json to_json(const ToolInfo& tool) {
  return tool_json(tool);
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
  if (report.fail_on != Severity::error)
    document["fail_on"] = to_string(report.fail_on);
  set(document, "started_at", unless_empty(report.started_at), "not recorded");
  set(document, "finished_at", unless_empty(report.finished_at), "the run has not finished");
  if (!report.phases.empty())
    document["phases"] = list_json(report.phases, phase_json);
  if (!report.connections.empty())
    document["connections"] = list_json(report.connections, connection_json);
  if (!report.networks.empty())
    document["networks"] =
        list_json(report.networks, [](const NetworkRow& row) { return to_json(row); });
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
  if (!report.other_nodes.empty())
    document["other_nodes"] = report.other_nodes;
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
  if (!report.host_differences.is_null())
    document["host_differences"] = report.host_differences;
  if (!report.processes.empty())
    document["processes"] = report.processes;
  if (!report.logs.is_null())
    document["logs"] = report.logs;
  if (!report.thresholds.empty())
    document["thresholds"] = report.thresholds;
  return document;
}

std::string to_text(const json& document) {
  const std::string text = document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  // A document may be printed on a terminal. Control characters occur in strings only (line ends
  // and blanks between them are not text), and so can be written as \u009b.
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

std::optional<double> unix_time(const std::string& utc) {
  std::tm parts{};
  const char* const end = ::strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (!end)
    return std::nullopt;
  const std::string_view rest(end);
  const std::string fraction = "0" + std::string(rest.substr(0, rest.find('Z')));
  const std::optional<double> part = parse_number(fraction);
  if (!ends_with(utc, "Z") || !part || !(*part >= 0 && *part < 1))
    return std::nullopt;
  return static_cast<double>(::timegm(&parts)) + *part;
}

namespace {

const json* member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text(const json& object, const char* key) {
  const json* value = member(object, key);
  return value ? value->get<std::string>() : "";
}

template <class T>
std::optional<T> optional(const json& object, const char* key) {
  const json* value = member(object, key);
  if (!value)
    return std::nullopt;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return require_whole_number<T>(*value);
  else
    return value->get<T>();
}

/// The enumerator with this text; the schema allows no other texts.
template <class Enum>
Enum from_word(const std::string& word, std::initializer_list<Enum> values, Enum fallback) {
  for (Enum value : values)
    if (word == to_string(value))
      return value;
  return fallback;
}

ToolInfo read_tool(const json& object) {
  ToolInfo tool;
  tool.version = text(object, "version");
  tool.git_revision = text(object, "git_revision");
  tool.git_dirty = optional<bool>(object, "git_dirty");
  tool.build = object.at("build").get<std::map<std::string, std::string>>();
  return tool;
}

Stats read_stats(const json& object) {
  Stats stats;
  stats.n = require_whole_number<std::size_t>(object.at("n"));
  stats.min = optional<double>(object, "min");
  stats.p50 = optional<double>(object, "p50");
  stats.p90 = optional<double>(object, "p90");
  stats.p99 = optional<double>(object, "p99");
  stats.max = optional<double>(object, "max");
  stats.mean = optional<double>(object, "mean");
  stats.stddev = optional<double>(object, "stddev");
  stats.mad = optional<double>(object, "mad");
  stats.p999 = optional<double>(object, "p999");
  return stats;
}

ResultRow read_row(const json& object) {
  ResultRow row;
  row.case_name = text(object, "case");
  row.params = object.at("params");
  if (const json* stats = member(object, "stats"))
    row.stats = read_stats(*stats);
  row.unit = text(object, "unit");
  row.bandwidth_GBps = optional<double>(object, "bandwidth_GBps");
  row.link_fraction = optional<double>(object, "link_fraction");
  row.rate_Mops = optional<double>(object, "rate_Mops");
  row.wire_GBps = optional<double>(object, "wire_GBps");
  row.counted_GBps = optional<double>(object, "counted_GBps");
  row.limited_by = optional<std::string>(object, "limited_by");
  if (const std::string why = text(object, "link_fraction_reason");
      why == text(object, "limited_by_reason")) // the default reasons differ
    row.limit_reason = why;
  row.verified =
      from_word(text(object, "verified"), {Verified::passed, Verified::failed, Verified::unchecked},
                Verified::unchecked);
  row.status = from_word(text(object, "status"),
                         {RowStatus::pass, RowStatus::fail, RowStatus::skip}, RowStatus::skip);
  row.reason = text(object, "reason");
  if (const json* samples = member(object, "samples"))
    row.samples = samples->get<std::vector<double>>();
  row.run = optional<int>(object, "run");
  if (const json* path = member(object, "path"))
    row.path = row_path_from_json(*path);
  row.limit_note = text(object, "limit_note");
  row.time_s = optional<double>(object, "time_s");
  row.algbw_GBps = optional<double>(object, "algbw_GBps");
  row.busbw_GBps = optional<double>(object, "busbw_GBps");
  if (const json* cores = member(object, "cores"))
    row.cores = cores->get<std::map<std::string, double>>();
  if (const json* windows = member(object, "windows"))
    row.windows =
        RowWindows{windows->at("length_s").get<double>(),
                   require_whole_number<std::size_t>(windows->at("count")),
                   optional<double>(*windows, "min_GBps"), optional<double>(*windows, "max_us")};
  if (const json* bins = member(object, "histogram"))
    for (const json& bin : *bins)
      row.histogram.push_back({bin.at("from").get<double>(), bin.at("to").get<double>(),
                               require_whole_number<std::size_t>(bin.at("count"))});
  return row;
}

NicCounter read_counter(const json& object) {
  NicCounter counter;
  counter.host = text(object, "host");
  counter.device = text(object, "device");
  counter.port = require_whole_number<int>(object.at("port"));
  counter.counter = text(object, "counter");
  counter.before = optional<std::uint64_t>(object, "before");
  counter.after = optional<std::uint64_t>(object, "after");
  counter.delta = optional<std::int64_t>(object, "delta");
  counter.reason = text(object, "delta_reason");
  counter.run = optional<int>(object, "run");
  return counter;
}

ConnectionRow read_connection(const json& object) {
  return {text(object, "transport"), require_whole_number<int>(object.at("source")),
          require_whole_number<int>(object.at("target")), text(object, "way")};
}

PinRow read_pin(const json& object) {
  return {require_whole_number<int>(object.at("pe")), text(object, "host"), text(object, "cpus"),
          optional<int>(object, "numa"), text(object, "by")};
}

PhaseRow read_phase(const json& object) {
  return {text(object, "name"), object.at("time_ms").get<double>(),
          require_whole_number<int>(object.at("slowest_pe"))};
}

CheckRow read_check(const json& object) {
  CheckRow row;
  row.id = text(object, "id");
  row.title = text(object, "title");
  row.status = text(object, "status");
  row.reason = text(object, "reason");
  row.evidence = text(object, "evidence");
  row.fix = text(object, "fix");
  row.group = text(object, "group");
  row.run = optional<int>(object, "run");
  row.time_s = optional<double>(object, "time_s");
  return row;
}

OptionEntry read_option(const json& object) {
  const std::string name = text(object, "name");
  return {name,
          shown_value(name, text(object, "value")),
          text(object, "origin"),
          text(object, "from"),
          text(object, "default"),
          text(object, "type"),
          text(object, "doc"),
          text(object, "problem")};
}

Finding read_finding(const json& object) {
  const Severity severity =
      from_word(text(object, "severity"), {Severity::info, Severity::warning, Severity::error},
                Severity::error);
  return {text(object, "id"), severity, text(object, "subject"), text(object, "message"),
          text(object, "fix")};
}

Job read_job(const json& object) {
  Job job{require_whole_number<int>(object.at("pes")),
          require_whole_number<int>(object.at("nodes")), text(object, "bootstrap"),
          text(object, "launcher")};
  if (const json* command = member(object, "command"))
    job.command = command->get<std::vector<std::string>>();
  return job;
}

ReportStatus read_status(const json& object) {
  return from_word(text(object, "status"),
                   {ReportStatus::complete, ReportStatus::incomplete, ReportStatus::failed},
                   ReportStatus::incomplete);
}

RunInfo read_run(const json& object) {
  RunInfo run;
  run.started_at = text(object, "started_at");
  run.finished_at = text(object, "finished_at");
  run.hosts = object.at("hosts").get<std::vector<std::string>>();
  run.command = object.at("command").get<std::vector<std::string>>();
  run.status = read_status(object);
  run.exit_code = static_cast<ExitCode>(require_whole_number<int>(object.at("exit_code")));
  run.tool_version = text(object, "tool_version");
  run.git_revision = text(object, "git_revision");
  run.job = read_job(object.at("job"));
  if (const json* topology = member(object, "topology"))
    run.topology = *topology;
  if (const json* mapping = member(object, "mapping"))
    run.mapping = *mapping;
  return run;
}

template <class T, class Read>
std::vector<T> read_list(const json& document, const char* key, Read read) {
  std::vector<T> items;
  if (const json* list = member(document, key))
    for (const json& item : *list)
      items.push_back(read(item));
  return items;
}

/// Throws std::out_of_range for an integer out of the type's range.
Report read_report(const json& document) {
  Report report;
  report.tool = read_tool(document.at("tool"));
  report.started_at = text(document, "started_at");
  report.finished_at = text(document, "finished_at");
  report.command = document.at("command").get<std::vector<std::string>>();
  report.status = read_status(document);
  report.exit_code = static_cast<ExitCode>(require_whole_number<int>(document.at("exit_code")));
  report.fail_on = parse_severity(text(document, "fail_on")).value_or(Severity::error);
  report.job = read_job(document.at("job"));
  report.hosts = document.at("hosts");
  report.env = document.at("env").get<std::map<std::string, std::string>>();
  for (auto& [name, value] : report.env) // the report may be of a version that did not hide secrets
    value = shown_value(name, value);
  if (const json* topology = member(document, "topology"))
    report.topology = *topology;
  if (const json* mapping = member(document, "mapping"))
    report.mapping = *mapping;
  if (const json* nodes = member(document, "other_nodes"))
    report.other_nodes = *nodes;
  if (const json* moe = member(document, "moe"))
    report.moe = *moe;
  if (const json* hotspots = member(document, "hotspots"))
    report.hotspots = *hotspots;
  if (const json* simulation = member(document, "simulation"))
    report.simulation = *simulation;
  if (const json* comparison = member(document, "comparison"))
    report.comparison = *comparison;
  if (const json* differences = member(document, "host_differences"))
    report.host_differences = *differences;
  if (const json* processes = member(document, "processes"))
    report.processes = *processes;
  if (const json* logs = member(document, "logs"))
    report.logs = *logs;
  if (const json* thresholds = member(document, "thresholds"))
    report.thresholds = *thresholds;
  report.runs = read_list<RunInfo>(document, "runs", read_run);
  report.phases = read_list<PhaseRow>(document, "phases", read_phase);
  report.connections = read_list<ConnectionRow>(document, "connections", read_connection);
  report.networks = read_list<NetworkRow>(document, "networks", network_row_from_json);
  if (const json* measurement = member(document, "measurement")) {
    const json& timer = measurement->at("timer");
    report.measurement = {text(timer, "clock"), timer.at("resolution_ns").get<double>(),
                          timer.at("cost_ns").get<double>(),
                          read_list<PinRow>(*measurement, "pinning", read_pin)};
  }
  report.options = read_list<OptionEntry>(document, "options", read_option);
  report.checks = read_list<CheckRow>(document, "checks", read_check);
  report.results = read_list<ResultRow>(document, "results", read_row);
  report.nic_counters = read_list<NicCounter>(document, "nic_counters", read_counter);
  report.findings = read_list<Finding>(document, "findings", read_finding);
  return report;
}

/// What `read` returns. Throws Error if an integer does not fit: the schema does not bound them.
template <class Read>
auto within_range(const std::string& subject, Read read) {
  try {
    return read();
  } catch (const std::out_of_range&) {
    throw input_error(subject, "", "an integer is out of range",
                      "pass a report written by shmemctl");
  }
}

} // namespace

Error breaks_schema(const std::vector<SchemaViolation>& violations, const std::string& subject) {
  const std::string more =
      violations.size() > 1 ? " (and " + std::to_string(violations.size() - 1) + " more)" : "";
  return input_error(subject, violations[0].pointer, violations[0].message + more,
                     "run shmemctl report validate to list all violations");
}

ResultRow row_from_json(const json& object, const std::string& subject) {
  return within_range(subject, [&] { return read_row(object); });
}

Report report_from_json(const json& document, const std::string& subject) {
  require_report_schema(document, subject);
  const std::vector<SchemaViolation> violations = validate_report(document);
  if (!violations.empty())
    throw breaks_schema(violations, subject);
  return within_range(subject, [&] { return read_report(document); });
}

namespace {

constexpr std::size_t max_parameters = 16;

} // namespace

std::vector<std::string> parameter_names(const std::vector<const ResultRow*>& rows) {
  std::vector<std::string> names;
  for (const ResultRow* row : rows) {
    if (!row->params.is_object())
      continue;
    for (const auto& [name, value] : row->params.items()) {
      if (names.size() >= max_parameters)
        return names;
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name == "size_bytes"; });
  return names;
}

} // namespace shmemctl
