// What topo, doctor and check share: where the node comes from, the report, its deadline, its end.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/context.h"
#include "reports/output.h"
#include "reports/report.h"
#include "reports/table.h"
#include "src/base/input.h"
#include "src/base/sysroot.h"
#include "src/base/watchdog.h"
#include "src/topo/mapping/mapping.h"
#include "src/topo/node.h"

namespace shmemctl {

/// A node and the tree it was read from; no tree for a recorded file.
struct NodeSource {
  Node node;
  std::unique_ptr<Sysroot> sysroot;
};

/// Where a subcommand is told to read from.
struct SourceFlags {
  std::string from;   ///< a recorded file, or "-"
  std::string format; ///< forces its format
};

/// One run of a subcommand that writes a report. The report is kept current, so that it is written
/// as `incomplete` if the run is interrupted, its deadline passes or it fails.
class Session {
public:
  Session(const Context& context, const Options& options);

  /// Reads the node: --from, else --sysroot, else this machine.
  NodeSource load(const SourceFlags& flags);
  /// What is being done, for the message of a deadline that passes.
  void phase(const std::string& words) {
    if (watchdog_)
      watchdog_->phase(words);
  }
  /// Another deadline than --timeout from now on; nothing: none.
  void set_deadline(std::optional<double> seconds);

  Report& report() { return report_; }
  /// Hands a copy of the report to the output, as what is to be written if the run dies now.
  void checkpoint() { output_.update(report_); }
  /// False if stdout carries data, or --quiet.
  bool wants_text() const;
  /// Sets the end, writes the files and prints the report's text; the exit code is 1 if there is
  /// a finding of severity error.
  ExitCode finish();
  /// As finish(), of a run that ended on the way: the report is `incomplete`, with this code.
  ExitCode finish_early(ExitCode code);
  /// From now on finish() only completes the report: somebody else prints and writes it.
  void defer_output() { deferred_ = true; }
  ReportOutput& output() { return output_; }

private:
  ExitCode end(ReportStatus status, ExitCode code);
  /// The deadline has passed: says so, writes the report as `incomplete`, ends the process.
  [[noreturn]] void expire(const std::string& phase);

  const Context& context_;
  const Options& options_;
  Report report_;
  ReportOutput output_;
  double deadline_s_;
  bool deferred_ = false;
  InputLimit no_limit_{0}; ///< the session's own deadline counts for what it reads
  std::optional<Watchdog> watchdog_;
};

/// Runs `body` with a session; after an Error the report is written as `incomplete`, with what had
/// been found.
ExitCode with_session(Context& context,
                      const std::function<ExitCode(Session&, const Options&)>& body);

/// A report of this run with nothing found yet.
Report new_report(const Context& context, const Options& options);

/// The node and its mapping, with advice, into the report.
void put_node(const Node& node, const Mapping& mapping, Report& report);

/// What is said on stderr of a report whose text is not printed, two lines for each finding: with
/// --quiet its errors; with --csv -, whose table has no findings, its warnings too. With --json -
/// nothing, since the document has all of them.
void print_findings_without_text(const Context& context, const Findings& findings);

/// How text is to look on this terminal.
TextStyle text_style(const Context& context, const Options& options);

/// Steps of topo and doctor, which check runs one after the other.
void run_topo(Session& session, const Options& options, const NodeSource& source);
/// Copies between every ordered pair of the machine's GPUs; nothing if it has fewer than two.
/// @return whether there was something to measure
bool run_gpu_links(Session& session, const NodeSource& source);
void run_doctor(Session& session, const NodeSource& source, const Environment& environment,
                const std::vector<std::string>& only, const std::vector<std::string>& skip);

/// Adds --from and --format, and --sysroot.
void add_source_flags(CLI::App& command, Context& context, const std::shared_ptr<SourceFlags>& to);
void add_mapping_flags(CLI::App& command, Context& context);

} // namespace shmemctl
