#include "src/instruments/explain/log_lines.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/base/text.h"

namespace shmemctl::explain {

namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

Error unreadable(const std::string& path, int error_number) {
  return {ExitCode::usage, path, "read", std::strerror(error_number),
          "pass a readable file, or - for stdin"};
}

/// The compression format of a file that begins with these bytes; "" if it is not compressed.
std::string compression_of(std::string_view begin) {
  if (starts_with(begin, "\x1f\x8b"))
    return "gzip";
  if (starts_with(begin, "\x28\xb5\x2f\xfd"))
    return "zstd";
  if (starts_with(begin, "\xfd"
                         "7zXZ"))
    return "xz";
  if (starts_with(begin, "BZh"))
    return "bzip2";
  return "";
}

/// "host:pid" if the text begins with "host:pid:tid" or, with `bracket`, with "host:pid]" or
/// "host:pid :tid"; otherwise "". A host name consists of letters, digits, '.', '-' and '_', with
/// at least one letter.
std::string_view process_at(std::string_view text, bool bracket) {
  std::size_t at = 0;
  bool has_letter = false; // without a letter it may be a time: 12:34:56
  for (; at < text.size() && at < 256; ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (std::isalpha(byte) != 0)
      has_letter = true;
    else if (std::isdigit(byte) == 0 && text[at] != '-' && text[at] != '.' && text[at] != '_')
      break;
  }
  if (!has_letter || at == text.size() || text[at] != ':')
    return {};
  std::size_t end = at + 1;
  while (end < text.size() && end < at + 12 && is_digit(text[end]))
    ++end;
  if (end == at + 1 || end == text.size())
    return {};
  const std::string_view process = text.substr(0, end);
  constexpr std::size_t padded_digits = 5; // UCX pads shorter numbers with spaces behind them
  while (bracket && text[end] == ' ' && end < at + 1 + padded_digits && end + 1 < text.size())
    ++end;
  if (text[end] == ':' && end + 1 < text.size() && is_digit(text[end + 1]))
    return process;
  return bracket && text[end] == ']' ? process : std::string_view{};
}

/// Removes `[1,3]<stdout>:` (job 1, rank 3), and a timestamp before it, from the beginning of
/// `text`, and returns the rank.
std::optional<int> take_mpirun_tag(std::string_view& text) {
  constexpr std::size_t near_bytes = 120;
  const std::string_view begin = text.substr(0, near_bytes);
  const std::size_t stream = begin.find("]<std");
  if (stream == std::string_view::npos)
    return std::nullopt;
  const std::size_t comma = begin.rfind(',', stream);
  const std::size_t colon = begin.find(">:", stream);
  if (comma == std::string_view::npos || colon == std::string_view::npos ||
      begin.rfind('[', comma) == std::string_view::npos)
    return std::nullopt;
  std::string_view number = begin.substr(comma + 1, stream - comma - 1);
  const std::optional<int> rank = take_number(number);
  if (!rank || !number.empty())
    return std::nullopt;
  text.remove_prefix(colon + 2);
  if (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  return rank;
}

std::optional<int> take_label(std::string_view& text) {
  std::string_view rest = text;
  while (!rest.empty() && rest.front() == ' ')
    rest.remove_prefix(1);
  const std::optional<int> rank = take_number(rest);
  if (!rank || rest.size() < 1 || rest.front() != ':' || (rest.size() > 1 && rest[1] != ' '))
    return std::nullopt;
  rest.remove_prefix(std::min<std::size_t>(2, rest.size()));
  text = rest;
  return rank;
}

/// Takes `[rank3]:` near the beginning of `text`; Ray and others write a prefix before it.
std::optional<int> take_torch_rank(std::string_view& text) {
  constexpr std::size_t near_bytes = 96;
  constexpr std::string_view word = "[rank";
  const std::size_t found = text.substr(0, near_bytes).find(word);
  if (found == std::string_view::npos)
    return std::nullopt;
  std::string_view rest = text.substr(found + word.size());
  const std::optional<int> rank = take_number(rest);
  if (!rank || !starts_with(rest, "]:"))
    return std::nullopt;
  rest.remove_prefix(2);
  if (!rest.empty() && rest.front() == ' ')
    rest.remove_prefix(1);
  text = rest;
  return rank;
}

/// Finds the process, possibly behind groups "[...] ", such as the times of NCCL and UCX.
std::string_view find_process(std::string_view body) {
  constexpr int max_groups = 3;
  for (int group = 0; group < max_groups && !body.empty(); ++group) {
    if (body.front() != '[')
      return process_at(body, false);
    if (const std::string_view process = process_at(body.substr(1), true); !process.empty())
      return process;
    const std::size_t end = body.substr(0, 64).find("] ");
    if (end == std::string_view::npos)
      return {};
    body.remove_prefix(end + 2);
  }
  return {};
}

} // namespace

void LineSplitter::take_line(std::string_view line) {
  if (!line.empty() && line.back() == '\r')
    line.remove_suffix(1);
  if (line.size() > max_line_bytes) {
    line = line.substr(0, max_line_bytes);
    too_long_ = true;
  }
  cut_lines_ += too_long_ ? 1 : 0;
  too_long_ = false;
  take_(line, ++lines_);
}

void LineSplitter::feed(std::string_view block) {
  bytes_ += block.size();
  while (!block.empty()) {
    const std::size_t end = block.find('\n');
    const std::string_view part = block.substr(0, end);
    if (end == std::string_view::npos || !rest_.empty() || too_long_) {
      const std::size_t room = max_line_bytes + 1 - std::min(max_line_bytes + 1, rest_.size());
      too_long_ = too_long_ || part.size() > room;
      rest_ += part.substr(0, room);
    }
    if (end == std::string_view::npos)
      return;
    if (rest_.empty()) {
      take_line(part);
    } else {
      take_line(rest_);
      rest_.clear();
    }
    block.remove_prefix(end + 1);
  }
}

void LineSplitter::finish() {
  if (rest_.empty())
    return;
  ended_within_line_ = true;
  take_line(rest_);
  rest_.clear();
}

void read_log(const std::string& path, LineSplitter& lines) {
  FileDescriptor opened;
  int descriptor = STDIN_FILENO;
  if (path != "-") {
    opened = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!opened)
      throw unreadable(path, errno);
    descriptor = opened.get();
    struct stat status {};
    if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode))
      throw unreadable(path, EISDIR);
  }
  const auto block = std::make_unique<char[]>(block_bytes);
  bool is_first = true;
  for (;;) {
    const ssize_t count = ::read(descriptor, block.get(), block_bytes);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      throw unreadable(path == "-" ? "stdin" : path, errno);
    if (count == 0)
      break;
    const std::string_view bytes(block.get(), static_cast<std::size_t>(count));
    if (const std::string kind = is_first ? compression_of(bytes) : ""; !kind.empty())
      throw Error(ExitCode::usage, path == "-" ? "stdin" : path, "",
                  "the log is compressed (" + kind + ")",
                  "pass it decompressed: zcat FILE | shmemctl explain -, or zstdcat, xzcat, bzcat");
    is_first = false;
    lines.feed(bytes);
  }
  lines.finish();
}

std::optional<int> take_number(std::string_view& text) {
  constexpr int max_digits = 9;
  int value = 0, digits = 0;
  while (digits < static_cast<int>(text.size()) &&
         is_digit(text[static_cast<std::size_t>(digits)])) {
    if (digits == max_digits)
      return std::nullopt;
    value = value * 10 + (text[static_cast<std::size_t>(digits)] - '0');
    ++digits;
  }
  if (digits == 0)
    return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(digits));
  return value;
}

bool has_label(std::string_view line) {
  return take_label(line).has_value();
}

LineOrigin read_origin(std::string_view line, bool labelled) {
  LineOrigin origin;
  origin.body = line;
  if (line.empty())
    return origin;
  origin.rank = take_mpirun_tag(origin.body);
  if (!origin.rank && labelled)
    origin.rank = take_label(origin.body);
  if (const std::optional<int> by_torch = take_torch_rank(origin.body); by_torch && !origin.rank)
    origin.rank = by_torch;
  constexpr std::string_view libfabric = "libfabric:";
  if (starts_with(origin.body, libfabric)) {
    const std::size_t end = origin.body.find(':', libfabric.size());
    std::string_view number = origin.body.substr(
        libfabric.size(), end == std::string_view::npos ? 0 : end - libfabric.size());
    const std::string_view digits = number;
    if (take_number(number) && number.empty()) // ":1234", including the colon
      origin.process = std::string_view(digits.data() - 1, digits.size() + 1);
    return origin;
  }
  origin.process = find_process(origin.body);
  origin.host = origin.process.substr(0, origin.process.rfind(':'));
  return origin;
}

void remove_escapes(std::string_view line, std::string& clean) {
  constexpr char escape = '\x1b';
  clean.clear();
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] != escape) {
      clean += line[at++];
      continue;
    }
    ++at;
    if (at == line.size())
      break;
    const char kind = line[at++];
    if (kind == '[') { // a control sequence ends with a byte from '@' to '~'
      while (at < line.size() && (line[at] < '@' || line[at] > '~'))
        ++at;
      at += at < line.size() ? 1 : 0;
    } else if (kind == ']') { // a title ends with BEL, or with ESC and a backslash
      while (at < line.size() && line[at] != '\a' && line[at] != escape)
        ++at;
      at += at < line.size() && line[at] == '\a' ? 1 : 0;
    }
  }
}

} // namespace shmemctl::explain
