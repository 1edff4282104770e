// A program run to its end, with what it said.
#pragma once

#include <string>
#include <vector>

#include "src/base/options.h"

namespace shmemctl {

struct ChildResult {
  int exit_status = 0;    ///< its exit code, or 128 + signal
  bool timed_out = false; ///< it was ended because the time was over
  std::string out, err;   ///< what it wrote, each cut at 64 MiB
};

/// Runs a program with stdin at /dev/null and waits for its end, reading what it writes. When the
/// time is over it gets SIGTERM, and SIGKILL three seconds later; it is in a process group of its
/// own, which the signals reach. Safe while other threads run. Throws Error (unavailable) if it
/// cannot be started.
/// @param program     file to execute; argv[0] is only its name
/// @param environment all that it gets
ChildResult run_child(const std::string& program, const std::vector<std::string>& argv,
                      const Environment& environment, double timeout_s);

} // namespace shmemctl
