// Where a report is written, and how it is written however the run ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reports/report.h"

namespace shmemctl {

/// Where the report is to be written; "" is nowhere, "-" is stdout.
struct ReportTargets {
  std::string json_path, csv_path;
  bool force = false; ///< existing files may be replaced
};

/// The finding `run-aborted` for the report of a run that this error ended.
Finding aborted_by(const Error& error);

/// Owns the report of one run and writes it once: by finish() or died(), or, if neither was reached
/// (an exception passes through, SIGINT, SIGTERM or SIGHUP arrives), by itself as `incomplete` with
/// the last update().
///
/// Signals: the constructor blocks SIGINT, SIGTERM and SIGHUP in the calling thread (not SIGHUP if
/// this process was started to ignore it, as by nohup), so it must run before any other thread is
/// started (threads inherit the mask), and a child that is to receive them must unblock them after
/// fork(). A thread of this object waits for them and does the writing: no code runs in a signal
/// handler, so nothing needs to be async-signal-safe. It then ends the process with exit code 130,
/// even if its own write, or that of another thread, makes no progress for two seconds. A second
/// SIGINT during the write ends the process at once. Without targets the thread still gives the
/// exit code 130. The destructor restores the mask.
class ReportOutput {
public:
  /// @param report what is known at the start (command, start time): the first snapshot
  /// Throws Error before anything runs: usage for a file that exists without `force`, or both
  /// targets the same; unavailable for a folder that is missing or not writable.
  ReportOutput(ReportTargets targets, const Report& report);
  ReportOutput(const ReportOutput&) = delete;
  ReportOutput& operator=(const ReportOutput&) = delete;
  /// Writes the last snapshot as `incomplete` (exit code 3) if nothing was written yet; a failure
  /// to do so is logged.
  ~ReportOutput();

  /// Names the files after construction, for a process that learns only then that it is the one to
  /// write. Throws like the constructor.
  void set_targets(ReportTargets targets);

  /// Called before such a signal ends the run, on the thread that waits for signals. If it returns
  /// true, the run continues and is expected to end soon; signals are then waited for again. May be
  /// empty.
  /// @param from_terminal every process of the terminal's foreground group has received the signal
  using SignalHandler = std::function<bool(int signal, bool from_terminal)>;
  void ask_before_ending(SignalHandler handler);

  /// Whether an end by a signal is reported on stderr, with what was kept and where; by default
  /// not, because only one process of a job should report it.
  void tell_interruption(bool tell);

  /// The error for the finding `run-aborted` if a signal ends the run. Without it the finding names
  /// the signal.
  void blame(const Error& error);

  /// The snapshot that is written if the run ends here. Cheap compared with a measurement: one
  /// copy.
  void update(const Report& report);

  /// Updates the results alone; all else stays as the last update() gave it.
  void update_results(const std::vector<ResultRow>& results);

  /// Writes the report, with `finished_at` set to now if it is empty. Throws Error (unavailable:
  /// the disk is full, the folder has been removed; usage: the file has appeared meanwhile).
  void finish(Report report);

  /// The run could not continue: writes the last snapshot as `incomplete`, with the error's exit
  /// code and the error as finding `run-aborted`. Does nothing if a report was written, or its
  /// writing failed. Throws like finish().
  void died(const Error& error);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace shmemctl
