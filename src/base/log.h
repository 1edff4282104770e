// Leveled logging with subsystems, on stderr: stdout belongs to data.
#pragma once

#include <string>
#include <string_view>

namespace shmemctl {

enum class LogLevel { error, warning, info, debug };

/// Sets which messages are printed. `subsystems` is a comma list ("topo,doctor"); empty means all
/// of them. Errors are printed whatever their subsystem.
void configure_log(LogLevel level, std::string_view subsystems = {});
/// Parses "error", "warning", "info" or "debug"; returns false for any other text.
bool parse_log_level(std::string_view text, LogLevel& level);
bool log_enabled(LogLevel level, std::string_view subsystem);

/// One line on stderr: "shmemctl: warning: topo: <message>". Messages are lower-case sentences.
/// Thread safe: a line is written by one write().
void log(LogLevel level, std::string_view subsystem, std::string_view message);

} // namespace shmemctl
