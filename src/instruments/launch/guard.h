// A small process that outlives a killed launcher and kills the processes that the launcher left.
#pragma once

#include <string>
#include <sys/types.h>

#include "src/base/file_descriptor.h"

namespace shmemctl {

/// The guard holds the read end of a pipe; only this process has the write end. If the pipe closes
/// without a goodbye, the guard sends SIGKILL to every process whose environment contains the
/// watched entry. It does not find processes that have cleared their environment.
class Guard {
public:
  /// Forks the guard; must be called while this process has one thread. Throws Error (unavailable).
  Guard();
  /// Says goodbye to the guard and reaps it.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// From now on the guard looks for this entry ("NAME=value", no newline).
  void watch(const std::string& entry);
  pid_t pid() const { return pid_; }

private:
  FileDescriptor pipe_;
  pid_t pid_ = -1;
};

} // namespace shmemctl
