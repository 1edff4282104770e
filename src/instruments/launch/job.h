// The processes of one `run`, from the first fork to the last waitpid.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "src/base/status_line.h"
#include "src/instruments/launch/guard.h"
#include "src/instruments/launch/launch.h"
#include "src/instruments/launch/processes.h"
#include "src/instruments/launch/relay.h"
#include "src/instruments/launch/signals.h"
#include "src/instruments/launch/spawn.h"

namespace shmemctl {

/// Raises the limit of open files while it exists. Children get the previous limit.
class OpenFilesLimit {
public:
  explicit OpenFilesLimit(rlim_t wanted);
  ~OpenFilesLimit();
  OpenFilesLimit(const OpenFilesLimit&) = delete;
  OpenFilesLimit& operator=(const OpenFilesLimit&) = delete;
  const rlimit& before() const { return before_; }

private:
  rlimit before_{};
};

/// Runs in one thread, as a poll(2) loop. The destructor ends all processes that still run.
class LaunchJob {
public:
  /// Starts all PEs. Throws Error.
  LaunchJob(const LaunchRequest& request, const OpenRendezvous& open_rendezvous);
  ~LaunchJob();
  LaunchJob(const LaunchJob&) = delete;
  LaunchJob& operator=(const LaunchJob&) = delete;

  /// Returns when every process has ended and all output is written, or given up as lost.
  /// Throws Error (unavailable) if stdout or stderr refused output, except with EPIPE.
  LaunchResult run();

private:
  using Clock = std::chrono::steady_clock;
  enum class Stage {
    running,
    grace,    ///< a PE has failed; the others have a second to notice that by themselves
    ending,   ///< SIGTERM was sent
    killing,  ///< SIGKILL was sent
    draining, ///< all processes have ended; output remains
    done
  };
  struct Pe {
    pid_t pid = -1;
    bool ended = false;
    std::unique_ptr<OutputStream> out, err;
  };

  // Starting the PEs.
  void start_all();
  Spawned start_pe(int pe, const std::string& program);
  Environment environment_of(int pe) const;

  // The loop.
  void poll_once();
  int poll_timeout_ms() const;
  void handle_signals();
  void handle(int signal);
  void pause_job();
  void reap();
  void note_ends(const std::vector<PeEnd>& batch);
  void relay_rest();
  /// Paints the status line, unless the last line of output is incomplete.
  void show_progress();
  void read_progress();
  /// Clears the status line, and logs a warning.
  void warn(const std::string& message);
  void advance();
  void enter(Stage stage, double seconds);
  void end_all(int signal);
  void finish_output();
  LaunchResult result();

  bool all_ended() const;
  bool anything_left() const;
  /// Signals the process groups of the PEs that still run.
  void signal_pes(int signal) const;
  /// Signals every process of the job.
  void signal_everything(int signal) const;

  const LaunchRequest& request_;
  SignalGate signals_; // blocked before any thread starts
  Subreaper subreaper_;
  /// Children that this process had before the job, and the guard process.
  std::set<pid_t> foreign_;
  Guard guard_; // forked while this process has one thread
  OpenFilesLimit open_files_;
  std::string id_;
  OutputSink out_{1}, err_{2};
  TerminalInput input_;
  std::vector<Pe> pes_;
  std::optional<StatusLine> status_;
  FileDescriptor progress_; ///< pipe from PE 0 with descriptions of the job's progress
  LaunchResult result_;
  Stage stage_ = Stage::running;
  Clock::time_point stage_end_, job_end_, next_paint_;
};

} // namespace shmemctl
