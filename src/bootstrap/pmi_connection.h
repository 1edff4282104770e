// The stream between a process and its process manager.
#pragma once

#include <string>
#include <string_view>

#include "src/base/deadline.h"
#include "src/base/file_descriptor.h"
#include "src/base/job_health.h"
#include "src/bootstrap/pmi_wire.h"

namespace shmemctl {

/// Sends requests and receives answers, each with a deadline. Throws Error: `unavailable` if the
/// process manager has closed the stream, sends what is no answer, or refuses (with its words);
/// `deadline`.
class PmiConnection {
public:
  /// A wait: until when, whom to ask meanwhile, and what for (for messages).
  struct Wait {
    const Deadline& deadline;
    JobHealth& health;
    std::string step;
    int peer = -1; ///< whose doing is waited for, if it is one PE's
  };

  /// @param descriptor a connected stream socket
  explicit PmiConnection(FileDescriptor descriptor);

  /// PMI-1: sends a line and waits for the line `expected`.
  PmiMessage ask_line(const PmiMessage& request, const std::string& expected, const Wait& wait);
  /// PMI-1: waits for the line `expected`, which nobody asked for.
  PmiMessage receive_line(const std::string& expected, const Wait& wait);
  /// PMI-2: sends a block and waits for its answer, "<command>-response".
  PmiMessage ask_block(const PmiMessage& request, const Wait& wait);
  void send(std::string_view bytes, const Wait& wait);
  void close() { descriptor_.reset(); }

  /// Throws Error (unavailable) if the answer has an `rc` that is not 0.
  static void require_success(const PmiMessage& answer, const std::string& step);

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
