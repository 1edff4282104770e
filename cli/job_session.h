// Shared by subcommands that run as a job: one report, written by PE 0, and one exit code.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/context.h"
#include "cli/progress.h"
#include "reports/output.h"
#include "src/base/input.h"
#include "src/base/watchdog.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

/// One PE's view of a run. Only PE 0 of the job writes files and prints. If the launcher tells
/// which process that is, the report exists from the start, so that a failed bring-up leaves one;
/// otherwise lead() is called later.
class JobSession {
public:
  /// Construct before any thread is started: it blocks signals.
  JobSession(const Context& context, const Options& options);

  /// Names the current step. --timeout limits each wait in a step. If the whole step takes longer
  /// than 1.5 times --timeout plus 2 s, the process is ended: a call in it seems to hang.
  void step(const std::string& name);
  /// The launcher says that this is PE 0: from now on the report is written, however the run ends.
  /// If the file cannot be written, only lead() says so, while all PEs can still be notified.
  void expect_to_lead();
  /// A phase of the bring-up begins. Completed phases and their times are in the report even if the
  /// bring-up fails in this one.
  void enter_phase(const std::string& name);
  /// The bring-up has ended, successfully or not: records the time of its last phase.
  void end_bring_up();
  /// Adds the location of all PEs to the report.
  void know_hosts(const Placement& placement);
  /// This is PE 0: from now on the report is written, however the run ends. Throws Error for a file
  /// that cannot be written, or exists without --force.
  void lead();
  /// This is not PE 0, whatever the launcher said.
  void follow();
  bool leads() const { return leads_; }
  /// True on PE 0 if stdout carries no data and there is no --quiet.
  bool wants_text() const;

  Report& report() { return report_; }
  /// Saves the report, which is written in this state if the run dies.
  void checkpoint() { output_.update(report_); }
  /// A checkpoint of the results alone, for a step that has many: a full copy would include a
  /// connection for each pair of PEs.
  void checkpoint_results() { output_.update_results(report_.results); }
  /// PE 0: prints a summary of what the NICs of all hosts carried, if text is wanted.
  void show_nics() const;
  /// Collective: ends the run and returns the job's exit code. PE 0 prints what was found, if text
  /// is wanted, and writes the report as complete. Throws Error.
  ExitCode conclude(ExitCode code);
  /// Ends the run with this error: writes the report as `incomplete`, unless conclude() has begun
  /// to write it. A failure to do so is printed.
  void died(const Error& error);
  /// Used to notify the other PEs when a step hangs or a signal ends this process; nullptr: no
  /// notice.
  void watch_failure_detector(FailureDetector* failure_detector);
  /// The runtime that gathers the exit codes of all worlds; nullptr: none.
  void watch(Runtime* runtime) { runtime_ = runtime; }

private:
  /// Collective. The exit code, with the findings that --fail-on makes a failure.
  ExitCode with_findings(ExitCode code);
  /// With several worlds (INIT_MODE): gathers the others' results and returns the worst exit code.
  ExitCode join_worlds(ExitCode code);
  void end_phase();
  void print_end();
  Error why_late(const std::string& step_name);
  [[noreturn]] void expire(const std::string& step_name);
  void interrupted(int signal);

  const Context& context_;
  const Options& options_;
  Report report_;
  std::mutex failure_detector_mutex_; ///< held during use, so that the failure detector stays alive
  FailureDetector* failure_detector_ = nullptr;
  ReportOutput output_; ///< declared after the two members above, which its thread uses
  Progress progress_;   ///< after output_, which blocks signals
  bool leads_ = false;
  bool expects_to_lead_ = false;
  bool phases_ended_ = false;
  std::chrono::steady_clock::time_point phase_start_; ///< start of the last of report_.phases
  InputLimit no_limit_{0};                            ///< steps have deadlines of their own
  std::atomic<bool> written_{false}; ///< also read by the thread that ends a step that hangs
  std::atomic<Runtime*> runtime_{nullptr};
  std::optional<Watchdog> watchdog_;
};

/// The options of the runtime that every command which runs as a job takes, including those of
/// GPUs and those that choose NICs.
void add_job_options(CLI::App& command, Context& context);

/// Collective. Before the first row: adds PEs, phases, networks and, if a JSON file is to be
/// written, machines and the node of PE 0 with its mapping to the report.
void describe_job(Runtime& runtime, const Context& context, const Options& options, Report& report);

/// Collective: the model of each PE's GPU, for job_text(); "" of a PE without one.
std::vector<std::string> gpu_models(Runtime& runtime);

using JobBody = std::function<ExitCode(JobSession&, Runtime&, const Options&)>;

/// Brings the runtime up, runs `body` on every PE and shuts it down. The exit code of `body` must
/// be the same on all PEs; an Error on one of them ends all.
/// @param request what this job needs other than the defaults; options, environment and the
/// announcement of phases are filled in here
ExitCode with_job(Context& context, RuntimeRequest request, const JobBody& body);

/// For an error that this PE met before its bring-up, in a job that was not started by `run` (which
/// itself prints only one of equal errors): brings up as much of the runtime as is needed to tell
/// the other PEs, so that only one PE prints it; each step takes at most 10 s.
/// @return whether a PE has printed it
bool share_error(const Context& context, const Error& error);

} // namespace shmemctl
