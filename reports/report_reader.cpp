// From a document back to the report model. The schema is checked first, so that what is read here
// has the right types; only enumerations and ranges of C++ types are left to convert.
#include "reports/report.h"
#include "reports/report_file.h"
#include "reports/validate.h"
#include "src/base/option_secrets.h"
#include "src/base/text.h"
#include "src/base/whole_number.h"

namespace shmemctl {

namespace {

using nlohmann::json;

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

/// The value of an enumeration whose word this is; the schema lets no other word pass.
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
  row.limited_by = optional<std::string>(object, "limited_by");
  if (const std::string why = text(object, "link_fraction_reason");
      why == text(object, "limited_by_reason")) // which differ where nothing was said
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
  return {require_whole_number<int>(object.at("pes")),
          require_whole_number<int>(object.at("nodes")), text(object, "bootstrap"),
          text(object, "launcher")};
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

/// Throws std::out_of_range for a whole number that its type does not hold.
Report read_report(const json& document) {
  Report report;
  report.tool = read_tool(document.at("tool"));
  report.started_at = text(document, "started_at");
  report.finished_at = text(document, "finished_at");
  report.command = document.at("command").get<std::vector<std::string>>();
  report.status = read_status(document);
  report.exit_code = static_cast<ExitCode>(require_whole_number<int>(document.at("exit_code")));
  report.job = read_job(document.at("job"));
  report.hosts = document.at("hosts");
  report.env = document.at("env").get<std::map<std::string, std::string>>();
  for (auto& [name, value] : report.env) // of a version that did not hide secrets
    value = shown_value(name, value);
  if (const json* topology = member(document, "topology"))
    report.topology = *topology;
  if (const json* mapping = member(document, "mapping"))
    report.mapping = *mapping;
  if (const json* moe = member(document, "moe"))
    report.moe = *moe;
  if (const json* hotspots = member(document, "hotspots"))
    report.hotspots = *hotspots;
  if (const json* simulation = member(document, "simulation"))
    report.simulation = *simulation;
  if (const json* comparison = member(document, "comparison"))
    report.comparison = *comparison;
  if (const json* thresholds = member(document, "thresholds"))
    report.thresholds = *thresholds;
  report.runs = read_list<RunInfo>(document, "runs", read_run);
  report.phases = read_list<PhaseRow>(document, "phases", read_phase);
  report.connections = read_list<ConnectionRow>(document, "connections", read_connection);
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

/// What `read` returns, if the whole numbers fit: the schema does not bound them.
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

} // namespace shmemctl
