// Shows the current step of a run to a user who waits for it.
#pragma once

#include <memory>
#include <string>

#include "cli/context.h"
#include "src/base/file_descriptor.h"
#include "src/base/status_line.h"

namespace shmemctl {

/// Whether stderr is a terminal on which a status line is wanted: not with --quiet, --no-progress
/// or TERM=dumb, nor in a job of several processes.
bool wants_status_line(const Context& context);

/// Shows the steps of a run in a status line on stderr (in a process that `run` started, in the
/// status line of `run`), or not at all.
class Progress {
public:
  /// Construct after signals are blocked: it may start a thread.
  explicit Progress(const Context& context);

  /// The step that begins, as a noun phrase: "bench put 4K"; "" for none. Thread safe.
  void say(const std::string& words);

private:
  std::unique_ptr<LiveStatus> line_;
  FileDescriptor pipe_; ///< to `run`
};

} // namespace shmemctl
