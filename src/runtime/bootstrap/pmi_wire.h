// The two wire protocols of process managers: PMI-1's lines and PMI-2's counted blocks.
//
// PMI-1: `cmd=put kvsname=K key=A value=B`, one line for each message.
// PMI-2: the length as a decimal number of six characters, then `cmd=kvs-put;key=A;value=B;`, with
// ";;" for a semicolon in a value. Its first exchange is a PMI-1 line.
// Sources: the PMI-2 specification in MPICH's wiki, and the behaviour of Hydra and Slurm.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/file_descriptor.h"
#include "src/base/job_health.h"

namespace shmemctl {

/// One request or response: a command and its key=value pairs.
class PmiMessage {
public:
  explicit PmiMessage(std::string command) : command_(std::move(command)) {}

  const std::string& command() const { return command_; }
  PmiMessage& add(std::string name, std::string value) {
    words_.emplace_back(std::move(name), std::move(value));
    return *this;
  }
  using Words = std::vector<std::pair<std::string, std::string>>;
  const Words& words() const { return words_; }
  /// The first value with this name.
  std::optional<std::string> find(std::string_view name) const;
  /// A value that is an integer; nothing if it is missing or malformed.
  std::optional<long long> integer(std::string_view name) const;
  bool operator==(const PmiMessage&) const = default;

private:
  std::string command_;
  Words words_;
};

/// Parses a line without its newline; nothing if it is malformed. A token without '=' belongs to
/// the value before it, because error texts contain blanks.
std::optional<PmiMessage> parse_pmi1(std::string_view line);
/// The line with its newline. Names and values must not contain blanks or newlines.
std::string format_pmi1(const PmiMessage& message);

/// Parses a block without its length; nothing if it is malformed.
std::optional<PmiMessage> parse_pmi2(std::string_view block);
/// The block with its length before it.
std::string format_pmi2(const PmiMessage& message);

/// Cuts a stream of bytes into lines or blocks. Throws Error (unavailable) if the bytes cannot be
/// the start of a line or block of at most max_frame_bytes.
class PmiFramer {
public:
  static constexpr std::size_t max_frame_bytes = std::size_t{64} * 1024;

  void feed(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole line without its newline, if there is one.
  std::optional<std::string> next_line();
  /// The next whole block without its length, if there is one.
  std::optional<std::string> next_block();

private:
  std::string take(std::size_t from, std::size_t bytes, std::size_t until);
  std::string buffer_;
};

// The stream between a process and its process manager.

/// Sends requests and receives responses, each with a deadline. Throws Error: `unavailable` if the
/// process manager has closed the connection, sends something malformed, or reports an error (with
/// its text); `deadline` if the deadline passes; or the job's first failure (JobHealth::check()).
class PmiConnection {
public:
  /// A wait: its deadline, the health to check meanwhile, and its purpose (for messages).
  struct Wait {
    const Deadline& deadline;
    JobHealth& health;
    std::string step;
    int peer = -1; ///< the PE that is waited for; -1 if there is none, or several
  };

  /// @param descriptor a connected stream socket
  explicit PmiConnection(FileDescriptor descriptor);

  /// PMI-1: sends a line and waits for the line `expected`.
  PmiMessage ask_line(const PmiMessage& request, const std::string& expected, const Wait& wait);
  /// PMI-1: waits for the line `expected`, which the server sends without a request.
  PmiMessage receive_line(const std::string& expected, const Wait& wait);
  /// PMI-2: sends a block and waits for its answer, "<command>-response".
  PmiMessage ask_block(const PmiMessage& request, const Wait& wait);
  void send(std::string_view bytes, const Wait& wait);
  void close() { descriptor_.reset(); }

  /// Throws Error (unavailable) if the answer has an `rc` that is not 0.
  static void require_success(const PmiMessage& response, const std::string& step);

private:
  using NextFrame = std::optional<std::string> (PmiFramer::*)();
  std::string receive(NextFrame next_frame, const Wait& wait);
  void read_some(const Wait& wait);
  void wait_for(short events, const Wait& wait) const;
  [[noreturn]] static void closed(int error_number, const Wait& wait);

  FileDescriptor descriptor_;
  PmiFramer framer_;
};

} // namespace shmemctl
