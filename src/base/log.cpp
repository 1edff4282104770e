#include "src/base/log.h"

#include <algorithm>
#include <mutex>
#include <unistd.h>
#include <vector>

#include "src/base/error.h"
#include "src/base/status_line.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

struct LogState {
  std::mutex mutex;
  LogLevel level = LogLevel::warning;
  std::vector<std::string> subsystems;
};

LogState& state() {
  static LogState instance;
  return instance;
}

const char* name_of(LogLevel level) {
  switch (level) {
  case LogLevel::error:
    return "error";
  case LogLevel::warning:
    return "warning";
  case LogLevel::info:
    return "info";
  case LogLevel::debug:
    return "debug";
  }
  return "error";
}

} // namespace

void configure_log(LogLevel level, std::string_view subsystems) {
  const std::lock_guard lock(state().mutex);
  state().level = level;
  state().subsystems.clear();
  for (const std::string& name : split(subsystems, ','))
    if (!trim(name).empty())
      state().subsystems.emplace_back(trim(name));
}

bool parse_log_level(std::string_view text, LogLevel& level) {
  for (LogLevel candidate : {LogLevel::error, LogLevel::warning, LogLevel::info, LogLevel::debug})
    if (lower(text) == name_of(candidate)) {
      level = candidate;
      return true;
    }
  return false;
}

bool log_enabled(LogLevel level, std::string_view subsystem) {
  const std::lock_guard lock(state().mutex);
  if (level > state().level)
    return false;
  const auto& chosen = state().subsystems;
  // Errors are never filtered out by subsystem.
  return level == LogLevel::error || chosen.empty() ||
         std::find(chosen.begin(), chosen.end(), subsystem) != chosen.end();
}

void log(LogLevel level, std::string_view subsystem, std::string_view message) {
  if (!log_enabled(level, subsystem))
    return;
  std::string line = "shmemctl: ";
  line += name_of(level);
  line += ": ";
  line += subsystem;
  line += ": ";
  line += printable(std::string(message), 2000);
  line += '\n';
  const StatusPause pause;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

} // namespace shmemctl
