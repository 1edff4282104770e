// Where a report goes, and that it gets there whatever ends the run.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "reports/report.h"

namespace shmemctl {

/// Where the report was asked for; "" is nowhere, "-" is stdout.
struct ReportTargets {
  std::string json_path, csv_path;
  bool force = false; ///< existing files may be replaced
};

/// `run-aborted`, as it stands in the report of a run that this error ended.
Finding aborted_by(const Error& error);

/// Owns the report of one run and writes it once: by finish() or died(), or, when neither was
/// reached (an exception passes through, SIGINT, SIGTERM or SIGHUP arrives), by itself as
/// `incomplete` with the last update().
///
/// Signals: the constructor blocks SIGINT, SIGTERM and SIGHUP in the calling thread (SIGHUP not if
/// this process was started to ignore it, as by nohup), so it has to come before any other thread
/// is started (threads inherit the mask), and a child that is to get them has to unblock them after
/// fork(). One thread of ours waits for them and does the writing there: nothing runs in a signal
/// handler, so nothing has to be async-signal-safe. It then ends the process with exit code 130,
/// also if what it writes, or what another thread is writing, makes no progress for two seconds. A
/// second signal while it writes ends the process at once. With no targets the thread still gives
/// the exit code 130. The destructor restores the mask.
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

  /// Names the files later than at construction, for a process that learns only then that it is
  /// the one to write. Throws like the constructor.
  void set_targets(ReportTargets targets);

  /// Who is asked before such a signal ends the run, on the thread that waits for them. If it
  /// returns true, the run goes on, and its own end is soon to come; signals are then waited for
  /// again. An empty one asks nobody.
  /// @param from_terminal every process of the terminal's foreground group has got the signal
  using SignalHandler = std::function<bool(int signal, bool from_terminal)>;
  void ask_before_ending(SignalHandler handler);

  /// What the run is ended by, if a signal ends it: the finding `run-aborted` of the report then.
  /// Without it that names the signal.
  void blame(const Error& error);

  /// The snapshot that is written if the run ends here. Cheap beside a measurement: one copy.
  void update(const Report& report);

  /// Writes the report as it is, with `finished_at` set to now if it is empty. Throws Error
  /// (unavailable: the disk is full, the folder is gone; usage: the file has appeared meanwhile).
  void finish(Report report);

  /// The run could not go on: writes the last snapshot as `incomplete`, with the error's exit code
  /// and the error as finding `run-aborted`. Nothing if a report was written, or its writing
  /// failed. Throws like finish().
  void died(const Error& error);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace shmemctl
