// What the subcommands that run as a job share: one report, written by PE 0, and one exit code.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/context.h"
#include "reports/output.h"
#include "src/base/input.h"
#include "src/base/watchdog.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

/// One PE's view of a run. Only PE 0 of the job has files to write and text to print. Where the
/// launcher tells who that is, the report is there from the start, so that a bring-up that fails
/// leaves one too; else it turns out on the way (lead()).
class JobSession {
public:
  /// Before any thread is started: it blocks signals.
  JobSession(const Context& context, const Options& options);

  /// What is being done now. A step may take half as long again as --timeout, which bounds each
  /// wait in it: then a call that hangs ends the process.
  void step(const std::string& words);
  /// The launcher says that this is PE 0: from now on the report is written, whatever ends the run.
  /// A file that cannot be written is for lead() to refuse, when all PEs can be told.
  void expect_to_lead();
  /// A phase of the bring-up begins: those before it, with the time that they took here, are in the
  /// report if that is the last one.
  void enter_phase(const std::string& name);
  /// The bring-up has ended, well or not: its last phase has its time now.
  void end_bring_up();
  /// Where the PEs are is in the report, too.
  void know_hosts(const Placement& placement);
  /// This is PE 0: from now on the report is written, whatever ends the run. Throws Error (usage)
  /// for a file that exists.
  void lead();
  /// This is not PE 0, whatever the launcher said.
  void follow();
  bool leads() const { return leads_; }
  /// PE 0, with no data on stdout and no --quiet.
  bool wants_text() const;

  Report& report() { return report_; }
  /// The report as it is written if the run dies now.
  void checkpoint() { output_.update(report_); }
  /// PE 0: what the NICs of all hosts carried, in short, where text is wanted.
  void show_nics() const;
  /// How each of them ends. PE 0 says what was found, in text where that is wanted, and writes the
  /// report as complete. Others: nothing. Throws Error.
  ExitCode conclude(ExitCode code);
  /// The run ends with this error: what there is goes out as `incomplete`, unless conclude()
  /// was reached. A failure to do so is printed.
  void died(const Error& error);
  /// By what the other PEs are told when a step hangs, or a signal ends this process; nullptr: by
  /// nothing.
  void watch_failure_detector(FailureDetector* failure_detector);
  /// Whose worlds' verdicts are gathered; nullptr: nobody's.
  void watch(Runtime* runtime) { runtime_ = runtime; }

private:
  /// Of an INIT_MODE with several worlds: what the others found, and the worst of their codes.
  ExitCode join_worlds(ExitCode code);
  void end_phase();
  void print_end();
  Error why_late(const std::string& words);
  [[noreturn]] void expire(const std::string& words);
  void interrupted(int signal);

  const Context& context_;
  const Options& options_;
  Report report_;
  std::mutex failure_detector_mutex_; ///< held while it is used, so that it does not go meanwhile
  FailureDetector* failure_detector_ = nullptr;
  ReportOutput output_; ///< its thread uses the two above
  bool leads_ = false;
  bool expects_to_lead_ = false;
  bool phases_ended_ = false;
  std::chrono::steady_clock::time_point phase_start_; ///< of the last one of report_.phases
  InputLimit no_limit_{0};                            ///< steps have deadlines of their own
  std::atomic<bool> written_{false}; ///< also looked at by who ends a step that hangs
  std::atomic<Runtime*> runtime_{nullptr};
  std::optional<Watchdog> watchdog_;
};

/// The options of the runtime that every command which runs as a job takes, those of GPUs among
/// them.
void add_job_options(CLI::App& command, Context& context);

/// Collective. Before the first row, what the report says of the job itself: PEs, phases, and, if
/// there is a file to write, its machines, and the node of PE 0 with its mapping.
void describe_job(Runtime& runtime, const Context& context, const Options& options, Report& report);

using JobBody = std::function<ExitCode(JobSession&, Runtime&, const Options&)>;

/// Brings the runtime up, runs `body` on every PE and takes it down. The exit code of `body` has to
/// be the same on all PEs; an Error on one of them ends all.
/// @param request what this job wants otherwise than by default; options, environment and the
///                announcement of phases are filled in here
ExitCode with_job(Context& context, RuntimeRequest request, const JobBody& body);

/// Of a job that other launchers than `run` have started, which passes on one of equal errors by
/// itself: brings up as much of the runtime as it takes to tell the other PEs of an error that this
/// one met before its bring-up, so that one PE prints it. Takes 10 s if they do not come.
/// @return whether a PE has printed it
bool share_error(const Context& context, const Error& error);

} // namespace shmemctl
