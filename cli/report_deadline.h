// --timeout for commands that read reports and write no report of their own.
#pragma once

#include <string>

#include "cli/context.h"
#include "src/base/input.h"
#include "src/base/watchdog.h"

namespace shmemctl {

/// While one exists, --timeout holds: when it is over, one line says what was being done, and the
/// process ends with exit code 124, whatever its other threads wait for (a pipe that nobody writes
/// to, a file system that does not answer).
class ReportDeadline {
public:
  explicit ReportDeadline(const Context& context);
  /// In words that fit "cannot finish ...": "reading a.json".
  void phase(const std::string& words) { watchdog_.phase(words); }
  void reading(const std::string& path) { phase("reading " + (path == "-" ? "stdin" : path)); }

private:
  InputLimit no_limit_{0}; ///< this one says it, and says it once
  Watchdog watchdog_;
};

} // namespace shmemctl
