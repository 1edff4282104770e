// Shared by subcommands without a runtime: the node's source, the report, its deadline, its end.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/context.h"
#include "cli/progress.h"
#include "reports/output.h"
#include "reports/report.h"
#include "reports/table.h"
#include "src/base/input.h"
#include "src/base/sysroot.h"
#include "src/base/watchdog.h"
#include "src/instruments/doctor/doctor.h"
#include "src/model/topo/mapping/mapping.h"
#include "src/model/topo/node.h"
#include "src/runtime/bootstrap/bootstrap.h"

namespace shmemctl {

/// A node and the tree it was read from; no tree for a recorded file that is not an archive.
struct NodeSource {
  Node node;
  std::unique_ptr<Sysroot> sysroot;
};

/// The source that a subcommand reads from.
struct SourceFlags {
  std::string from;   ///< a recorded file, or "-"
  std::string format; ///< set if the format is forced
};

/// One run of a subcommand that writes a report. The report is kept current, so that it is written
/// as `incomplete` if the run is interrupted, its deadline passes or it fails.
class Session {
public:
  Session(const Context& context, const Options& options);

  /// Reads the node: --from, else --sysroot, else this machine.
  NodeSource load(const SourceFlags& flags);
  /// The current step, for the message of a deadline that passes, and for the status line.
  void phase(const std::string& words) {
    if (watchdog_)
      watchdog_->phase(words);
    progress_.say(words);
  }
  /// From now on something else has the terminal: no status line until the next phase.
  void leave_terminal() { progress_.say(""); }
  /// Replaces --timeout by another deadline, counted from now; empty: no deadline.
  void set_deadline(std::optional<double> seconds);

  Report& report() { return report_; }
  /// Passes a copy of the report to the output, to be written if the run dies now.
  void checkpoint() { output_.update(report_); }
  /// False if stdout carries data, with --quiet, and after defer_output().
  bool wants_text() const;
  /// Sets the end time, writes the files and prints the report's text; the exit code is 1 if there
  /// is a finding of the severity of --fail-on or more.
  /// @param otherwise the exit code if there is no such finding
  ExitCode finish(ExitCode otherwise = ExitCode::ok);
  /// As finish(), for an aborted run: the report is `incomplete`, with this code.
  ExitCode finish_early(ExitCode code);
  /// From now on finish() only completes the report: the caller prints and writes it.
  void defer_output() {
    deferred_ = true;
    output_.tell_interruption(false);
  }
  ReportOutput& output() { return output_; }

private:
  ExitCode end(ReportStatus status, ExitCode code);
  /// The deadline has passed: prints that, writes the report as `incomplete`, ends the process.
  [[noreturn]] void expire(const std::string& phase);

  const Context& context_;
  const Options& options_;
  Report report_;
  ReportOutput output_;
  Progress progress_; ///< after output_, which blocks signals
  double deadline_s_;
  bool deferred_ = false;
  InputLimit no_limit_{0}; ///< files are read under the session's own deadline
  std::optional<Watchdog> watchdog_;
};

/// Runs `body` with a session; after an Error the report is written as `incomplete`, with the
/// results so far.
ExitCode with_session(Context& context,
                      const std::function<ExitCode(Session&, const Options&)>& body);

/// One PE of a job that a launcher started.
struct BootstrapSession {
  Session& session;
  const Context& context; ///< without files and output except on PE 0
  const Options& options;
  Bootstrap& bootstrap;
};
/// As with_session(), on every PE of a job: opens the bootstrap first. Only PE 0 writes files and
/// prints.
ExitCode with_bootstrap(Context context, const std::function<ExitCode(BootstrapSession)>& body);

/// An empty report of this run.
Report new_report(const Context& context, const Options& options);

/// The report's entry of the host that `node` was read from: host_json() and, if there is a tree,
/// the host's facts.
/// @param sysroot the tree that the node was read from; null for a recorded file without one
nlohmann::json described_host(const Node& node, const Sysroot* sysroot);

/// Adds the node, its mapping and advice to the report.
void put_node(const Node& node, const Mapping& mapping, Report& report);

/// Prints findings on stderr when the report's text is not printed, two lines each: with --quiet
/// the errors and what --fail-on makes a failure; else with --csv -, whose table has no findings,
/// also the warnings; else with --json - no findings, because the document has them all.
void print_findings_without_text(const Context& context, const Findings& findings,
                                 Severity fail_on);

/// The style of text for this terminal.
TextStyle text_style(const Context& context, const Options& options);

/// mapping_request() of the node; uses the NVSHMEM release that a recorded node states, unless the
/// options name one.
MappingRequest mapping_request(const Options& options, const NodeSource& source);

/// The steps of topo and doctor, which check runs one after the other.
void run_topo(Session& session, const Options& options, const NodeSource& source);
/// Adds the finding pcie-acs of doctor, if the bridges between the devices can be read: the
/// distances say how near devices are, not whether the bridges let them exchange data directly.
void add_redirects(Session& session, const NodeSource& source, const Environment& environment);
/// Measures copies between every ordered pair of the NVIDIA GPUs of the machine that this runs on.
/// @return false, without a measurement, if it has fewer than two, or `source` is another machine
bool run_gpu_links(Session& session, const NodeSource& source);
/// @param kernel_log a text that is read instead of the machine's kernel log; null: the kernel log
/// @param python     the Python environment whose packages are checked; "": the active one
void run_doctor(Session& session, const NodeSource& source, const Environment& environment,
                const std::vector<std::string>& only, const std::vector<std::string>& skip,
                const KernelLogText* kernel_log = nullptr, const std::string& python = {});

/// Adds --from and --format, and --sysroot, which --from excludes.
void add_source_flags(CLI::App& command, Context& context, const std::shared_ptr<SourceFlags>& to);
/// Adds --from, of archives only, and --sysroot.
void add_archive_flags(CLI::App& command, Context& context, const std::shared_ptr<SourceFlags>& to);
/// Throws Error (usage) if what --from names is only a topology.
void require_files(const NodeSource& source, const SourceFlags& flags);
void add_mapping_flags(CLI::App& command, Context& context);

} // namespace shmemctl
