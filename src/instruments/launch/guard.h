// A small process that outlives a killed launcher and kills the processes that it left behind.
#pragma once

#include <string>
#include <sys/types.h>

#include "src/base/file_descriptor.h"

namespace shmemctl {

/// Holds the read end of a pipe whose write end only this process has. When that closes without a
/// goodbye, every process that carries the watched entry in its environment gets SIGKILL. A
/// process that cleared its environment is not found.
class Guard {
public:
  /// Forks; call while this process has one thread. Throws Error (unavailable).
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
