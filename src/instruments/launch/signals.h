// Signals as events of a descriptor (no signal handlers), and terminal input for PE 0.
#pragma once

#include <csignal>
#include <optional>
#include <string>

#include "src/base/file_descriptor.h"

namespace shmemctl {

/// While it exists, the signals that a launcher handles arrive only at descriptor(). Signals that
/// this process was started to ignore (nohup) stay ignored. Threads that start meanwhile inherit
/// the mask. The destructor restores everything.
class SignalGate {
public:
  SignalGate(); ///< throws Error (unavailable)
  ~SignalGate();
  SignalGate(const SignalGate&) = delete;
  SignalGate& operator=(const SignalGate&) = delete;

  int descriptor() const { return descriptor_.get(); }
  /// The next pending signal; nothing if there is none.
  std::optional<int> next();
  /// Stops this process as SIGTSTP does by default (not at all in an orphaned process group);
  /// returns when it is continued.
  void stop_here();
  /// In a child, before exec: mask and dispositions as this process was started with.
  /// Async-signal-safe.
  void restore_in_child() const;

private:
  sigset_t before_{};
  struct sigaction child_before_ {};
  FileDescriptor descriptor_;
};

// Forwards terminal input to PE 0, which is in its own process group and may not read the terminal.

/// Copies a terminal into a pipe. Reads only while this process is in the foreground, so that a
/// job in the background is not stopped by SIGTTIN.
class TerminalInput {
public:
  TerminalInput() = default;
  TerminalInput(int terminal, FileDescriptor pipe);

  bool open() const { return static_cast<bool>(pipe_); }
  /// Poll terminal() for POLLIN; call again periodically, because the foreground changes without
  /// notice.
  bool wants_read() const;
  int terminal() const { return terminal_; }
  /// Poll pipe() for POLLOUT.
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
