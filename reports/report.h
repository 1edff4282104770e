// The report: its rows, what identifies them, and its JSON (schema 1.1.0).
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/networks.h"
#include "src/base/error.h"
#include "src/base/finding.h"
#include "src/base/report_schema.h"

namespace shmemctl {

/// One end of a path.
struct PathEnd {
  int pe = 0;
  std::string host;
  std::optional<int> node = std::nullopt; ///< its node's number, if the host name is ambiguous
};

/// The path of a measurement. Transports and NICs are those that were used, not those that were
/// available.
struct RowPath {
  std::optional<PathEnd> first, second; ///< the pair; empty if many PEs send
  std::vector<std::string> transports;  ///< sorted: "shm", "libfabric"
  std::vector<std::string> nics; ///< NICs of the PEs that issue: "eth0", "mlx5_0", "mlx5_1:2"
};

/// "PE 0 (a) -> PE 2 (b) by libfabric eth0"; without a pair "by libfabric, shm (eth0)". Strings are
/// unescaped: a reader of a foreign report prints safe_text() of it.
std::string to_text(const RowPath& path);

nlohmann::json to_json(const RowPath& path);
/// Reads a path of a document that is valid by the schema.
RowPath row_path_from_json(const nlohmann::json& object);

struct ToolInfo {
  std::string version, git_revision;
  std::optional<bool> git_dirty; ///< unknown outside a checkout
  std::map<std::string, std::string>
      build; ///< "cuda": "13.0" or "none", "compiler": ...
             ///< "glibc": the oldest one that this binary starts with
};
/// Describes this binary.
ToolInfo tool_info();
/// The object that reports have as `tool`.
nlohmann::json to_json(const ToolInfo& tool);

enum class ReportStatus { complete, incomplete, failed };
enum class Verified { passed, failed, unchecked };
enum class RowStatus { pass, fail, skip };

struct Stats {
  std::size_t n = 0;
  std::optional<double> min, p50, p90, p99, max, mean, stddev; ///< p99 only from 100 samples
  std::optional<double> mad; ///< 1.4826 * median distance from the median: outliers do not move it
  std::optional<double> p999 = std::nullopt; ///< only from 1000 samples
};

/// Counts the samples from `from` up to, but not including, `to`; the last bin includes `to`.
struct HistogramBin {
  double from = 0, to = 0; ///< in the row's unit
  std::size_t count = 0;
};

/// The worst windows of a run of given duration, which is cut into windows of equal numbers of
/// operations.
struct RowWindows {
  double length_s = 0; ///< at the usual speed
  std::size_t count = 0;
  std::optional<double> min_GBps, max_us; ///< bandwidth, and mean time of an operation
};

/// One row per tuple of independent variables.
struct ResultRow {
  std::string case_name; ///< key "case"
  nlohmann::json params = nlohmann::json::object();
  std::optional<Stats> stats;
  std::string unit;
  std::optional<double> bandwidth_GBps, link_fraction;
  std::optional<double> rate_Mops; ///< operations per second, in millions
  std::optional<double> wire_GBps; ///< what a PE really sent, if bandwidth_GBps counts more
  std::optional<double> counted_GBps = std::nullopt; ///< by another project's count of the bytes
  std::optional<std::string> limited_by;
  std::string limit_reason = {}; ///< why limited_by and link_fraction are unknown, if known
  Verified verified = Verified::unchecked;
  RowStatus status = RowStatus::pass;
  std::string reason;          ///< why unchecked, failed or skipped
  std::vector<double> samples; ///< in `unit`, a subset of what `stats` summarises; for comparisons
  std::optional<int> run = std::nullopt;       ///< index in Report::runs, of a merged report
  std::optional<RowPath> path = std::nullopt;  ///< the row's path, if it is known
  std::string limit_note = {};                 ///< why link_fraction may exceed 1
  std::optional<double> time_s = std::nullopt; ///< time that measuring and verifying the row took
  /// Only for collectives: algbw and busbw as nccl-tests defines them, from the median time.
  std::optional<double> algbw_GBps = std::nullopt, busbw_GBps = std::nullopt;
  std::vector<HistogramBin> histogram = {}; ///< all samples, if a histogram was asked for
  std::optional<RowWindows> windows = std::nullopt;
  /// CPU time of each thread as a share of a core, on the PE that uses most: "host", "proxy",
  /// "libfabric".
  std::map<std::string, double> cores = {};
};

struct NicCounter {
  std::string host, device, counter;
  int port = 1;
  std::optional<std::uint64_t> before, after;
  std::optional<std::int64_t> delta;
  std::string reason = {}; ///< why there is no delta; "" means that one reading is missing
  std::optional<int> run = std::nullopt;
};

struct Job {
  int pes = 1, nodes = 1;
  std::string bootstrap = "none", launcher = "none";
  std::vector<std::string> command = {}; ///< with the launcher; empty if unknown
};

/// Where one PE ran.
struct PinRow {
  int pe = 0;
  std::string host;
  std::string cpus;        ///< "0-3,8"
  std::optional<int> numa; ///< empty if the CPUs are in several nodes
  std::string by;          ///< "bench", "launcher", "nobody"
};

/// How results were measured: key "measurement".
struct Measurement {
  std::string clock; ///< on PE 0
  double resolution_ns = 0, cost_ns = 0;
  std::vector<PinRow> pinning; ///< by PE
};

/// One phase of the runtime's start: key "phases".
struct PhaseRow {
  std::string name;
  double time_ms = 0; ///< on the slowest PE
  int slowest_pe = 0;
};

/// How one PE reaches another by one transport: key "connections".
struct ConnectionRow {
  std::string transport;
  int source = 0, target = 0;
  std::string path; ///< key "way": "rxe0:1 -> rxe0:1, 2 QPs"
};

/// Key "checks": of `doctor`, one per precondition; of `check`, its parts as well.
struct CheckRow {
  std::string id; ///< kebab-case
  std::string title;
  std::string status;   ///< "pass", "warning", "fail", "skipped"
  std::string reason;   ///< one sentence
  std::string evidence; ///< the file or call read, and what it said
  std::string fix;      ///< "" if it passed
  std::string group;    ///< "driver", "gpu", ...; "" if it has none
  std::optional<int> run = std::nullopt;
  /// Time that the check, or the part of `check`, took.
  std::optional<double> time_s = std::nullopt;
};

/// `env`'s results: key "options", one per option of the tool.
struct OptionEntry {
  std::string name, value;
  std::string origin;      ///< "default", "config", "nvshmem", "environment", "command line"
  std::string origin_name; ///< the flag, variable or file; "" for the default
  std::string default_value, type, doc;
  std::string problem; ///< why it is not valid; "" if it is
};

/// One run whose report was merged into this one: key "runs".
struct RunInfo {
  std::string started_at, finished_at;
  std::vector<std::string> hosts; ///< names of the hosts, sorted
  std::vector<std::string> command;
  ReportStatus status = ReportStatus::complete;
  ExitCode exit_code = ExitCode::ok;
  std::string tool_version, git_revision;
  Job job;
  /// The node of this run, if the nodes of the merged runs differ, so that the report itself has
  /// none; null otherwise.
  nlohmann::json topology, mapping;
};

struct Report {
  ToolInfo tool = tool_info();
  std::string started_at, finished_at; ///< RFC 3339, UTC
  std::vector<std::string> command;    ///< argv
  ReportStatus status = ReportStatus::incomplete;
  ExitCode exit_code = ExitCode::ok;
  Severity fail_on = Severity::error; ///< findings from this severity on made the exit code 1
  Job job;
  std::vector<PhaseRow> phases; ///< in order of execution
  std::optional<Measurement> measurement;
  /// Connections of transports that have something to report.
  std::vector<ConnectionRow> connections;
  std::vector<NetworkRow> networks; ///< networks that pairs of nodes used
  nlohmann::json hosts = nlohmann::json::array();
  /// Options that were set, and variables of other libraries from the allow-list
  /// (recorded_variables()); no secrets.
  std::map<std::string, std::string> env;
  std::vector<OptionEntry> options;
  nlohmann::json topology; ///< null if there is none
  nlohmann::json mapping;
  /// For a job: nodes that differ from that of `topology` and `mapping`, each kind once.
  nlohmann::json other_nodes = nlohmann::json::array();
  std::vector<CheckRow> checks;
  std::vector<ResultRow> results;
  std::vector<NicCounter> nic_counters;
  nlohmann::json moe = nlohmann::json::array(); ///< an object for each point of `moe`
  nlohmann::json hotspots;                      ///< null if NICs were not watched
  Findings findings;
  std::vector<RunInfo> runs; ///< the runs that `report merge` combined
  nlohmann::json comparison; ///< result of `report diff`; null if there is none
  nlohmann::json thresholds = nlohmann::json::array(); ///< thresholds that rows were compared with
  nlohmann::json simulation;                           ///< result of `sim`; null if there is none
  nlohmann::json logs; ///< result of `explain`; null if there is none
  /// Differences of hosts that should be alike; null if not compared.
  nlohmann::json host_differences;
  nlohmann::json processes = nlohmann::json::array(); ///< result of `inspect`
};

const char* to_string(ReportStatus status);
const char* to_string(Verified verified);
const char* to_string(RowStatus status);

nlohmann::json to_json(const Report& report);
/// The document as text, indented, with a newline at its end. Bytes that are not UTF-8 become
/// U+FFFD.
std::string to_text(const nlohmann::json& document);
/// Throws Error (usage), naming the key, for a document that is not a report of this schema's
/// major version or breaks its schema. Keys that a newer minor version added are ignored.
Report report_from_json(const nlohmann::json& document, const std::string& subject);

/// "2026-11-21T03:33:00.123Z" now.
std::string utc_now();
/// Seconds since 1970 of such a text, fractions included; empty for any other text.
std::optional<double> unix_time(const std::string& utc);

/// Names of the rows' parameters in order of appearance, size first. At most 16: no case has more,
/// but a hostile document may.
std::vector<std::string> parameter_names(const std::vector<const ResultRow*>& rows);

} // namespace shmemctl
