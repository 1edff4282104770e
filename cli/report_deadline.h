// --timeout for commands that read reports and write no report of their own.
#pragma once

#include <string>

#include "cli/context.h"
#include "src/base/input.h"
#include "src/base/watchdog.h"

namespace shmemctl {

/// While one exists, --timeout applies: when it passes, one line says what was being done, and the
/// process ends with exit code 124, whatever its other threads wait for (a pipe without a writer, a
/// file system that hangs).
class ReportDeadline {
public:
  explicit ReportDeadline(const Context& context);
  /// A phrase that fits "cannot finish ...": "reading a.json".
  void phase(const std::string& words) { watchdog_.phase(words); }
  void reading(const std::string& path) { phase("reading " + (path == "-" ? "stdin" : path)); }

private:
  InputLimit no_limit_{0}; ///< this one prints the message, once
  Watchdog watchdog_;
};

} // namespace shmemctl
