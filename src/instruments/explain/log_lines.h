// Lines of logs of any size and any bytes, and who wrote each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace shmemctl::explain {

/// More of one line is not looked at.
inline constexpr std::size_t max_line_bytes = std::size_t{64} << 10;

/// Cuts bytes that arrive in blocks into lines. A line's end is "\n" or "\r\n"; all other bytes,
/// NUL included, are text. Keeps at most one line.
class LineSplitter {
public:
  /// @param take  a line without its end, and its number from 1; valid during the call
  explicit LineSplitter(std::function<void(std::string_view, std::uint64_t)> take)
      : take_(std::move(take)) {}

  void feed(std::string_view block);
  /// After the last block: the text after the last newline, if there is any.
  void finish();

  std::uint64_t lines() const { return lines_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Lines of which only the first max_line_bytes were taken.
  std::uint64_t cut_lines() const { return cut_lines_; }
  /// Whether text follows the last newline.
  bool ended_within_line() const { return ended_within_line_; }

private:
  void take_line(std::string_view line);

  std::function<void(std::string_view, std::uint64_t)> take_;
  std::string rest_; ///< first part of a line that goes on in the next block
  bool too_long_ = false;
  std::uint64_t lines_ = 0, bytes_ = 0, cut_lines_ = 0;
  bool ended_within_line_ = false;
};

/// Reads a file, or stdin for "-", block by block. Throws Error (usage) if it cannot be read, is a
/// folder, or is compressed.
void read_log(const std::string& path, LineSplitter& lines);

/// Who wrote a line, as far as the line itself says.
struct LineOrigin {
  /// By the launcher: `[1,3]<stdout>:` (mpirun), `3: ` (srun --label), `[rank3]:` (PyTorch).
  std::optional<int> rank;
  /// The host in `host:pid:tid` (NCCL, NVSHMEM, UCX) or `[host:pid]` (Open MPI).
  std::string_view host;
  std::string_view process; ///< "host:pid", ":pid" (libfabric); "" if unknown
  std::string_view body;    ///< the line behind what the launcher put in front
};

/// @param labelled  whether `3: ` at the begin of a line is a label of srun
LineOrigin read_origin(std::string_view line, bool labelled);

/// Whether the line begins as srun --label writes it.
bool has_label(std::string_view line);

/// Removes ANSI escape sequences (colours, titles) from `line` into `clean`.
void remove_escapes(std::string_view line, std::string& clean);

/// The decimal number at the begin of `text`, which is moved behind it; empty if there is none or
/// it exceeds an int.
std::optional<int> take_number(std::string_view& text);

} // namespace shmemctl::explain
