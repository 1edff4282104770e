#include "reports/output.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <mutex>
#include <optional>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <thread>
#include <unistd.h>

#include "reports/csv.h"
#include "src/base/atomic_file.h"
#include "src/base/file_descriptor.h"
#include "src/base/log.h"
#include "src/base/service_thread.h"
#include "src/base/signal_name.h"
#include "src/base/text.h"
#include "src/base/watchdog.h"

namespace shmemctl {

namespace {

/// Throws if the folder cannot be written: now, rather than after an hour of measurements.
void check_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw system_error(path, "write", errno, "choose a writable directory");
}

/// Throws if the path cannot be written: if it exists (a device, a pipe), the path itself,
/// otherwise its folder.
void check_target(const std::string& path, bool force) {
  if (path.empty() || path == "-")
    return;
  check_output_path(path, force);
  if (::access(path.c_str(), F_OK) != 0)
    check_folder_of(path);
  else if (::access(path.c_str(), W_OK) != 0)
    throw system_error(path, "write", errno, "choose a writable file");
}

void check_targets(const ReportTargets& targets) {
  if (!targets.json_path.empty() && targets.json_path == targets.csv_path)
    throw Error(ExitCode::usage, targets.json_path, "", "--json and --csv name the same file",
                "pass different file names");
  check_target(targets.json_path, targets.force);
  check_target(targets.csv_path, targets.force);
}

/// Whether this process ignores the signal. Such a signal must not be blocked, because it would
/// then arrive at the waiting thread.
bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  if (!is_ignored(SIGHUP))
    sigaddset(&signals, SIGHUP);
  return signals;
}

/// Blocks the signals in this thread; the destructor restores the mask.
class BlockedSignals {
public:
  BlockedSignals() {
    const sigset_t signals = ending_signals();
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
  sigset_t before_{};
};

Finding interrupted_by(int signal, pid_t sender) {
  const std::string name = signal_name(signal);
  return {"run-aborted", Severity::error, name,
          "interrupted by " + name +
              (sender > 0 ? ", which process " + std::to_string(sender) + " sent" : ""),
          "run it again; what the report holds was found before"};
}

/// Text about the files that remain when a signal ends a run.
std::string kept_text(const ReportTargets& targets, const Report& report) {
  std::string files;
  for (const std::string& path : {targets.json_path, targets.csv_path})
    if (!path.empty())
      files += (files.empty() ? "" : " and ") + (path == "-" ? "stdout" : printable(path));
  if (files.empty())
    return "nothing was kept; --json FILE keeps what was found";
  std::size_t findings = report.findings.size();
  for (const Finding& finding : report.findings)
    findings -= finding.id == "run-aborted" ? 1 : 0;
  return "kept in " + files + ", as incomplete: " + counted(report.results.size(), "result") +
         ", " + (report.checks.empty() ? "" : counted(report.checks.size(), "check") + ", ") +
         counted(findings, "finding");
}

void set_finished(Report& report) {
  if (report.finished_at.empty())
    report.finished_at = utc_now();
}

} // namespace

Finding aborted_by(const Error& error) {
  return {"run-aborted", Severity::error, error.subject(), error.message(),
          error.fix().empty() ? "see the message" : error.fix()};
}

struct ReportOutput::State {
  ReportTargets targets;
  std::mutex mutex; ///< guards snapshot and written; only one thread writes at a time
  Report snapshot;
  std::optional<Finding> cause; ///< cause of an end by a signal; guarded by the same mutex
  bool written = false;
  std::atomic<bool> tells_interruption{false};
  BlockedSignals blocked;
  FileDescriptor signals, stop;
  SignalHandler handler; ///< guarded by a mutex of its own: writing takes time
  std::mutex handler_mutex;
  std::thread watcher;

  /// Call with the mutex held.
  void write(const Report& report) {
    written = true; // also if the write fails: a second attempt would only fail again
    if (!targets.json_path.empty())
      write_file_atomically(targets.json_path, to_text(to_json(report)), targets.force);
    if (!targets.csv_path.empty())
      write_file_atomically(targets.csv_path, write_csv(report), targets.force);
  }

  /// Call with the mutex held. Returns whether this call has written the report.
  bool write_incomplete(ExitCode code) noexcept {
    if (written)
      return false;
    try {
      snapshot.status = ReportStatus::incomplete;
      snapshot.exit_code = code;
      if (cause)
        snapshot.findings.push_back(*cause);
      set_finished(snapshot);
      write(snapshot);
      return true;
    } catch (const Error& error) {
      log(LogLevel::error, "report", error.message() + "; " + error.fix());
    } catch (const std::exception& error) {
      log(LogLevel::error, "report", error.what());
    }
    return false;
  }

  /// Call with the mutex held, after write_incomplete() has returned true. Without a file, the
  /// interruption is reported only for SIGINT, that is, if the user ended the run: a launcher ends
  /// the PEs of a job by SIGTERM.
  void tell(int signal) const {
    const bool to_a_file = !targets.json_path.empty() || !targets.csv_path.empty();
    if (tells_interruption && (to_a_file || signal == SIGINT))
      std::cerr << "shmemctl: interrupted by " + signal_name(signal) + ": " +
                       kept_text(targets, snapshot) + "\n"
                << std::flush;
  }

  /// Waits for a signal; false at the end of the object's life.
  bool take_signal(signalfd_siginfo& taken) {
    pollfd waiting[] = {{signals.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}};
    while (::poll(waiting, 2, -1) < 0)
      if (errno != EINTR)
        return false;
    return (waiting[0].revents & POLLIN) != 0 &&
           ::read(signals.get(), &taken, sizeof taken) == sizeof taken;
  }

  bool goes_on(const signalfd_siginfo& taken) {
    const std::lock_guard lock(handler_mutex);
    return handler && handler(static_cast<int>(taken.ssi_signo), taken.ssi_code == SI_KERNEL);
  }

  void watch() {
    signalfd_siginfo taken{};
    do
      if (!take_signal(taken))
        return;
    while (goes_on(taken));
    // A second SIGINT, of a user who does not want to wait, ends the process at once. Other signals
    // wait until the report is written: Open MPI's launcher sends SIGTERM again as soon as the
    // first PE of a host has ended.
    sigset_t next;
    sigemptyset(&next);
    sigaddset(&next, SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &next, nullptr);
    end_if_writing_hangs(ExitCode::interrupted); // the lock's holder may be writing, too
    const std::lock_guard lock(mutex);
    if (!cause)
      cause = interrupted_by(static_cast<int>(taken.ssi_signo), static_cast<pid_t>(taken.ssi_pid));
    if (write_incomplete(ExitCode::interrupted))
      tell(static_cast<int>(taken.ssi_signo));
    ::_exit(static_cast<int>(ExitCode::interrupted));
  }
};

ReportOutput::ReportOutput(ReportTargets targets, const Report& report) {
  check_targets(targets);
  state_ = std::make_unique<State>();
  state_->targets = std::move(targets);
  state_->snapshot = report;
  const sigset_t signals = ending_signals();
  state_->signals = FileDescriptor(::signalfd(-1, &signals, SFD_CLOEXEC));
  state_->stop = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (!state_->signals || !state_->stop)
    throw system_error("signalfd", "create", errno, "raise the limit of open files: ulimit -n");
  state_->watcher = start_service_thread("signals", [state = state_.get()] { state->watch(); });
}

ReportOutput::~ReportOutput() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->write_incomplete(ExitCode::unavailable);
  }
  const std::uint64_t one = 1;
  if (::write(state_->stop.get(), &one, sizeof one) != sizeof one)
    log(LogLevel::error, "report", "the signal thread cannot be stopped");
  state_->watcher.join();
}

void ReportOutput::set_targets(ReportTargets targets) {
  check_targets(targets);
  const std::lock_guard lock(state_->mutex);
  state_->targets = std::move(targets);
}

void ReportOutput::ask_before_ending(SignalHandler handler) {
  const std::lock_guard lock(state_->handler_mutex);
  state_->handler = std::move(handler);
}

void ReportOutput::tell_interruption(bool tell) {
  state_->tells_interruption = tell;
}

void ReportOutput::blame(const Error& error) {
  const std::lock_guard lock(state_->mutex);
  state_->cause = aborted_by(error);
}

void ReportOutput::update(const Report& report) {
  const std::lock_guard lock(state_->mutex);
  state_->snapshot = report;
}

void ReportOutput::update_results(const std::vector<ResultRow>& results) {
  const std::lock_guard lock(state_->mutex);
  state_->snapshot.results = results;
}

void ReportOutput::finish(Report report) {
  set_finished(report);
  const std::lock_guard lock(state_->mutex);
  state_->write(report);
}

void ReportOutput::died(const Error& error) {
  const std::lock_guard lock(state_->mutex);
  if (state_->written) // written already, or a write has failed, and that error ends the run
    return;
  Report report = state_->snapshot;
  report.status = ReportStatus::incomplete;
  report.exit_code = error.code();
  report.findings.push_back(aborted_by(error));
  set_finished(report);
  state_->write(report);
}

} // namespace shmemctl
