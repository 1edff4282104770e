// Registered buffers: each PE puts into the buffer of its neighbour, which verifies the data that
// arrived.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/base/archive.h"
#include "src/base/options.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

/// A put that did not arrive as it was sent.
struct BufferFailure {
  int source = 0, target = 0;
  /// Size of the put; offset of the wrong byte in the buffer.
  std::uint64_t size_bytes = 0, offset_bytes = 0;
  int expected = 0, found = 0; ///< values of the byte
  bool operator==(const BufferFailure&) const = default;
};

/// The results of all PEs; the same on every PE except for the time.
struct BufferVerdict {
  int pairs = 0;                  ///< PEs that put into their neighbour's buffer
  std::vector<std::string> paths; ///< paths that puts took, sorted: "zero-copy", ...
  /// "PE 1 to PE 2: ...": why a buffer could not be registered or put into.
  std::vector<std::string> problems;
  std::vector<BufferFailure> failures; ///< by target
  double time_s = 0;                   ///< time that the check took this PE
  bool passed() const { return failures.empty(); }
};

/// Collective: every PE registers a small buffer, and puts into the buffer of the next PE that
/// shares memory with it. Registration errors become problems in the verdict, unless the job has
/// failed. Throws Error: deadline; unavailable (a PE was lost).
BufferVerdict check_registered_buffers(Runtime& runtime, const Options& options);

/// What one PE tells the others about its put and its buffer.
struct BufferReport {
  std::string path;                    ///< "zero-copy", ...; "" if this PE put nothing
  std::string problem;                 ///< "to PE 2: ..."; "" if there was no problem
  std::vector<BufferFailure> failures; ///< failures that this PE found as the target
};
/// @param messages to_bytes() of every PE's BufferReport, by PE. Throws Error (unavailable) for a
/// malformed message.
BufferVerdict merge_buffer_reports(const std::vector<std::string>& messages);
void serialize(Archive& archive, BufferFailure& failure);
void serialize(Archive& archive, BufferReport& report);

/// Adds the row bringup.registered-buffer, and the findings buffer-corrupt and buffer-unavailable.
/// Adds nothing if no PEs share memory and there is no problem.
void add_to_report(const BufferVerdict& verdict, Report& report);
/// One line for people.
std::string buffers_line(const BufferVerdict& verdict);

} // namespace shmemctl
