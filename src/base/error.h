// The one error type: what failed, where, the system's own words, and what to do about it.
#pragma once

#include <exception>
#include <optional>
#include <string>

namespace shmemctl {

/// Why a run ends; the value is the process's exit code (the contract in docs/command-line.md).
enum class ExitCode : int {
  ok = 0,
  finding = 1,     ///< it ran, and something is wrong
  usage = 2,       ///< bad invocation or bad input
  unavailable = 3, ///< the run could not be carried out
  deadline = 124,  ///< a deadline passed
  interrupted = 130
};

/// Where an error happened. Only what is known is printed.
struct Where {
  std::string host;
  std::optional<int> pe;
  std::string device;
  std::optional<int> port;
};

/// Carries a failure from the call that met it to the one place that prints it.
///
/// `message()` is the first line ("what failed, where, the system's message"), `fix()` the second
/// ("what to do"). Both are single lines; control characters in them are escaped, so that a
/// hostile file name cannot break a log.
class Error : public std::exception {
public:
  /// @param subject    what is concerned: a file, a device, an option
  /// @param attempted  the call or step that failed, e.g. "read" or "parse"
  Error(ExitCode code, std::string subject, std::string attempted, std::string system_message,
        const std::string& fix, Where where = {});

  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const noexcept { return message_; }
  const std::string& fix() const noexcept { return fix_; }
  const std::string& subject() const noexcept { return subject_; }
  const std::string& attempted() const noexcept { return attempted_; }
  const std::string& system_message() const noexcept { return system_message_; }
  const Where& where() const noexcept { return where_; }
  ExitCode code() const noexcept { return code_; }

private:
  ExitCode code_;
  std::string subject_;
  std::string attempted_;
  std::string system_message_;
  std::string fix_;
  Where where_;
  std::string message_;
};

/// Bad input in a file or a value: exit code 2. `position` is "line 3, column 7", or empty.
Error input_error(std::string subject, const std::string& position, const std::string& problem,
                  const std::string& fix);

/// A failed system call: exit code 3, with strerror(error_number).
Error system_error(std::string subject, std::string attempted, int error_number,
                   const std::string& fix);

/// Makes text of a file or another host safe to print: replaces what a terminal acts on
/// (is_hostile()) and bytes that are not UTF-8 by \xNN, and cuts at `max_bytes`.
std::string printable(const std::string& text, std::size_t max_bytes = 200);

} // namespace shmemctl
