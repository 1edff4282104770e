// Signals as events of a descriptor (without signal handlers), and terminal input for PE 0.
#pragma once

#include <csignal>
#include <optional>
#include <string>

#include "src/base/file_descriptor.h"

namespace shmemctl {

/// While it exists, the signals that a launcher handles arrive only at descriptor(). Signals that
/// this process was started to ignore (nohup) stay ignored, except SIGCHLD. Threads that start
/// meanwhile inherit the signal mask. The destructor restores everything.
class SignalGate {
public:
  SignalGate(); ///< throws Error (unavailable)
  ~SignalGate();
  SignalGate(const SignalGate&) = delete;
  SignalGate& operator=(const SignalGate&) = delete;

  int descriptor() const { return descriptor_.get(); }
  /// The next pending signal; nothing if there is none.
  std::optional<int> next();
  /// Stops this process as SIGTSTP does by default (which has no effect in an orphaned process
  /// group). Returns when the process is continued.
  void stop_here();
  /// In a child, before exec: restores the mask and the disposition of SIGCHLD that this process
  /// had before. Async-signal-safe.
  void restore_in_child() const;

private:
  sigset_t before_{};
  struct sigaction child_before_ {};
  FileDescriptor descriptor_;
};

// Terminal input is forwarded to PE 0, which has its own process group and may not read the
// terminal.

/// Copies a terminal into a pipe. Reads only while this process is in the foreground, so that a
/// job in the background is not stopped by SIGTTIN.
class TerminalInput {
public:
  TerminalInput() = default;
  TerminalInput(int terminal, FileDescriptor pipe);

  bool open() const { return static_cast<bool>(pipe_); }
  /// Whether to poll terminal() for POLLIN. Call this again periodically, because the foreground
  /// process group changes without notice.
  bool wants_read() const;
  int terminal() const { return terminal_; }
  /// Whether to poll pipe() for POLLOUT.
  bool wants_write() const { return open() && !waiting_.empty(); }
  int pipe() const { return pipe_.get(); }
  void read();
  void write();
  void close() { pipe_.reset(); }

private:
  int terminal_ = -1;
  FileDescriptor pipe_;
  std::string waiting_;
};

} // namespace shmemctl
