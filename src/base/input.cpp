#include "src/base/input.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/base/text.h"
#include "src/base/units.h"

namespace shmemctl {

namespace {

Error open_error(const std::string& path, const std::string& problem) {
  return Error(ExitCode::usage, path, "read", problem, "name a readable file, or - for stdin");
}

/// Offset of the bracket that goes too deep, or npos. Quick, and without memory of its own, so it
/// runs before the parser builds anything.
std::size_t too_deep_at(const std::string& text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > max_nesting)
        return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return std::string::npos;
}

} // namespace

std::string read_input(const std::string& path, std::size_t max_bytes) {
  FileDescriptor opened;
  int descriptor = STDIN_FILENO;
  if (path != "-") {
    opened = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened)
      throw open_error(path, std::strerror(errno));
    descriptor = opened.get();
  }
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode))
    throw open_error(path, "it is a folder");
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      throw open_error(path, std::strerror(errno));
    if (count == 0)
      return text;
    if (text.size() + static_cast<std::size_t>(count) > max_bytes)
      throw open_error(path, "larger than the limit of " + format_size_bytes(max_bytes) + "B");
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

nlohmann::json parse_json(const std::string& text, const std::string& subject) {
  const std::string fix = "give a JSON document, as shmemctl --json writes it";
  if (const std::size_t at = too_deep_at(text); at != std::string::npos)
    throw input_error(subject, position_of(text, at),
                      "nested deeper than " + std::to_string(max_nesting) + " levels", fix);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::size_t at = error.byte == 0 ? 0 : error.byte - 1;
    throw input_error(subject, position_of(text, at),
                      trim(text).empty() ? "the file is empty" : "not valid JSON", fix);
  } catch (const nlohmann::json::exception& error) { // e.g. a number out of range
    throw input_error(subject, "", error.what(), fix);
  }
}

} // namespace shmemctl
