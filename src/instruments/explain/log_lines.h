// Splits logs of any size and any bytes into lines, and determines the process that wrote each
// line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace shmemctl::explain {

/// Only this many bytes of a line are read.
inline constexpr std::size_t max_line_bytes = std::size_t{64} << 10;

/// Splits bytes that arrive in blocks into lines. A line ends with "\n" or "\r\n"; all other bytes,
/// including NUL, are text. Stores at most one line.
class LineSplitter {
public:
  /// @param take  called with a line without its end, which is valid during the call, and its
  /// number, counted from 1
  explicit LineSplitter(std::function<void(std::string_view, std::uint64_t)> take)
      : take_(std::move(take)) {}

  void feed(std::string_view block);
  /// Call after the last block: takes the text after the last newline, if there is any.
  void finish();

  std::uint64_t lines() const { return lines_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Number of lines of which only the first max_line_bytes were taken.
  std::uint64_t cut_lines() const { return cut_lines_; }
  /// Whether text follows the last newline.
  bool ended_within_line() const { return ended_within_line_; }

private:
  void take_line(std::string_view line);

  std::function<void(std::string_view, std::uint64_t)> take_;
  std::string rest_; ///< first part of a line that continues in the next block
  bool too_long_ = false;
  std::uint64_t lines_ = 0, bytes_ = 0, cut_lines_ = 0;
  bool ended_within_line_ = false;
};

/// Reads a file, or stdin for "-", block by block. Throws Error (usage) if it cannot be read, is a
/// folder, or is compressed.
void read_log(const std::string& path, LineSplitter& lines);

/// The writer of a line, as far as the line itself says.
struct LineOrigin {
  /// The rank in the launcher's prefix: `[1,3]<stdout>:` (mpirun), `3: ` (srun --label), `[rank3]:`
  /// (PyTorch).
  std::optional<int> rank;
  /// The host in `host:pid:tid` (NCCL, NVSHMEM, UCX) or `[host:pid]` (Open MPI).
  std::string_view host;
  std::string_view process; ///< "host:pid", ":pid" (libfabric); "" if unknown
  std::string_view body;    ///< the line without the launcher's prefix
};

/// @param labelled  whether `3: ` at the beginning of a line is a label of srun
LineOrigin read_origin(std::string_view line, bool labelled);

/// Whether the line begins with a label as srun --label writes it.
bool has_label(std::string_view line);

/// Removes ANSI escape sequences (colours, titles) from `line` into `clean`.
void remove_escapes(std::string_view line, std::string& clean);

/// Removes the decimal number at the beginning of `text` and returns it; empty if there is none or
/// it has more than 9 digits.
std::optional<int> take_number(std::string_view& text);

} // namespace shmemctl::explain
