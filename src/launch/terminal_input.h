// Typed input for PE 0, which is in a process group of its own and may not read the terminal.
#pragma once

#include <string>

#include "src/base/file_descriptor.h"

namespace shmemctl {

/// Copies a terminal into a pipe. Reads only while this process is in the foreground, so that a
/// job in the background is not stopped by SIGTTIN.
class TerminalInput {
public:
  TerminalInput() = default;
  TerminalInput(int terminal, FileDescriptor pipe);

  bool open() const { return static_cast<bool>(pipe_); }
  /// Poll terminal() for POLLIN; look again now and then, the foreground changes without notice.
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
