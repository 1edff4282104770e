// The one error type: what failed, where, the cause as the system names it, and how to fix it.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace shmemctl {

/// Why a run ends; the value is the process's exit code (the contract in
/// docs/reference/command-line.md).
enum class ExitCode : int {
  ok = 0,
  finding = 1,     ///< the command ran, and something is wrong
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

/// Carries a failure from the call where it happened to the one place that prints it.
///
/// `message()` is the first line that is printed, `fix()` the second. Both are single lines;
/// control characters in them are escaped, so that a hostile file name cannot break a log. There is
/// one template, with or without an action:
///
///     SUBJECT (WHERE): cannot ACTION: CAUSE      report.json: cannot read: Permission denied
///     SUBJECT (WHERE): PROBLEM                   --routing: unknown value "zpif"
///
/// - SUBJECT is what is concerned: a file, a device, an option, a PE, a transport. No article, no
/// verb.
/// - ACTION is the step that failed: a verb in its base form, with its own object if the subject is
///   not it ("read", "connect", "create a QP"). It does not repeat the subject and does not end
///   with a preposition. Empty for bad input: then the cause is the PROBLEM, and no step is named.
/// - CAUSE is the system's text, or ours; no period at its end.
/// - FIX is what to do: a verb in its base form or a command first, or "did you mean zipf?".
///
/// tests/style/test_errors.py renders every site of the sources and checks these rules; all texts
/// are in tests/data/error_texts.txt.
class Error : public std::exception {
public:
  /// @param subject        what is concerned: a file, a device, an option
  /// @param attempted      the action: "read", "create a QP"; "" for bad input
  /// @param system_message the cause, or the problem if there is no action
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

  /// A process of the job has printed this error already, so print_error() does nothing. Copies
  /// keep this state.
  bool printed() const noexcept { return printed_; }
  void mark_printed() noexcept { printed_ = true; }

  /// Every PE of the job fails with this error, because all have the same command line. A PE that
  /// prints it for another one names neither that PE nor its host. Copies keep this state.
  bool same_on_all_pes() const noexcept { return same_on_all_pes_; }
  Error on_all_pes() && {
    same_on_all_pes_ = true;
    return std::move(*this);
  }

  /// The same error with another subject, action, location or fix; it stays printed and the same on
  /// all PEs if it was.
  Error with_subject(std::string subject) const;
  Error with_action(std::string action) const;
  Error with_where(Where where) const;
  Error with_fix(const std::string& fix) const;
  /// The same error on this host and PE, unless it names others.
  Error located(const std::string& host, std::optional<int> pe) const;

private:
  ExitCode code_;
  std::string subject_;
  std::string attempted_;
  std::string system_message_;
  std::string fix_;
  Where where_;
  std::string message_;
  bool printed_ = false;
  bool same_on_all_pes_ = false;
};

/// Whether two processes of a job report the same failure: everything except host, PE and fix is
/// equal.
bool same_failure(const Error& left, const Error& right);

/// Bad input in a file or a value: exit code 2, "SUBJECT: POSITION: PROBLEM". `position` is
/// "line 3, column 7", or empty.
Error input_error(std::string subject, const std::string& position, const std::string& problem,
                  const std::string& fix);

/// A failed system call: exit code 3, with strerror(error_number).
Error system_error(std::string subject, std::string attempted, int error_number,
                   const std::string& fix);

/// Makes text of a file or another host safe to print: replaces characters that a terminal
/// interprets (is_hostile()) and bytes that are not UTF-8 by \xNN, and cuts at `max_bytes`.
std::string printable(const std::string& text, std::size_t max_bytes = 200);

/// Prints an Error on stderr in one write: a line with the failure, and a line with the fix if it
/// has one. This is the only function that prints an Error. Prints nothing if the error has been
/// printed already, here or by another process of the job (Error::printed()).
void print_error(const Error& error);

} // namespace shmemctl
