#include "src/base/input.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <poll.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "src/base/deadline.h"
#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/base/watchdog.h"

namespace shmemctl {

namespace {

/// The file that a missing one was probably meant to be: the one with the nearest name in the same
/// folder, "put.json" for "pt.json". "" if none is near.
std::string file_meant(const std::string& path) {
  constexpr std::size_t max_names = 1000; // enough to be useful, and not slow
  const std::filesystem::path missing(path);
  const std::filesystem::path folder = missing.parent_path();
  std::vector<std::string> names;
  std::error_code problem;
  std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, problem);
  for (; !problem && entry != std::filesystem::directory_iterator() && names.size() < max_names;
       entry.increment(problem))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end()); // the order in a folder is undefined
  const auto nearest = nearest_spelling(missing.filename().string(), names);
  return nearest ? (folder / *nearest).string() : "";
}

Error open_error(const std::string& path, const std::string& problem, bool missing = false) {
  const std::string fix = "pass a readable file, or - for stdin";
  const std::string meant = missing ? file_meant(path) : "";
  return Error(ExitCode::usage, path, "read", problem,
               meant.empty() ? fix : "did you mean " + printable(meant) + "? Otherwise " + fix);
}

/// Offset of the bracket that exceeds the nesting limit, or npos. Runs before the parser builds
/// anything; fast, and needs no memory.
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

std::atomic<double> limit_s{0};
std::atomic<bool> was_read{false};

/// Ends the process if the result still exists when the limit has passed. No result for stdin, or
/// if there is no limit.
std::optional<Watchdog> watch_over(const std::string& path) {
  const double seconds = limit_s.load();
  if (path == "-" || seconds <= 0)
    return std::nullopt;
  return std::optional<Watchdog>(
      std::in_place, std::chrono::duration<double>(seconds), [path, seconds](const std::string&) {
        print_error(Error(ExitCode::deadline, path, "read",
                          fmt::format("timed out after {:g} s", seconds),
                          raise_timeout() + ", or check the file system or pipe it is on"));
        std::_Exit(static_cast<int>(ExitCode::deadline)); // the reading thread cannot be stopped
      });
}

/// Opens with O_NONBLOCK: otherwise opening a pipe blocks until it has a writer, and nothing could
/// be reported meanwhile.
FileDescriptor open_input(const std::string& path) {
  FileDescriptor opened(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (const int error_number = errno; !opened)
    throw open_error(path, std::strerror(error_number), error_number == ENOENT);
  return opened;
}

/// Waits for data or the end of a pipe or device that was opened with O_NONBLOCK.
void wait_readable(int descriptor) {
  pollfd waiting{descriptor, POLLIN, 0};
  while (::poll(&waiting, 1, -1) < 0 && errno == EINTR) {
  }
}

} // namespace

InputLimit::InputLimit(double seconds) : before_(limit_s.exchange(seconds)) {}

InputLimit::~InputLimit() {
  limit_s = before_;
}

bool input_was_read() {
  return was_read.load();
}

std::string read_input(const std::string& path, std::size_t max_bytes) {
  was_read = true;
  const std::optional<Watchdog> watchdog = watch_over(path);
  FileDescriptor opened;
  int descriptor = STDIN_FILENO;
  if (path != "-") {
    opened = open_input(path);
    descriptor = opened.get();
  }
  const auto require_room_for = [&](std::size_t bytes) {
    if (bytes > max_bytes) // stdin has the same limit
      throw Error(ExitCode::usage, path, "read",
                  "larger than the limit of " + format_size_bytes(max_bytes) + "B",
                  "pass a smaller file");
  };
  std::string text;
  bool waits = false;
  struct stat status {};
  if (::fstat(descriptor, &status) == 0) {
    waits = path != "-" && !S_ISREG(status.st_mode);
    if (S_ISDIR(status.st_mode))
      throw open_error(path, "it is a directory");
    if (S_ISREG(status.st_mode) && status.st_size > 0) {
      require_room_for(static_cast<std::size_t>(status.st_size));
      text.reserve(static_cast<std::size_t>(status.st_size));
    }
  }
  char buffer[1 << 16];
  for (;;) {
    if (waits)
      wait_readable(descriptor);
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count < 0 && (errno == EINTR || (waits && errno == EAGAIN)))
      continue;
    if (count < 0)
      throw open_error(path, std::strerror(errno));
    if (count == 0)
      return text;
    require_room_for(text.size() + static_cast<std::size_t>(count));
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

namespace {

/// Parses with `parse`, and rewords its errors.
template <class Parse>
nlohmann::json parsed_by(const std::string& text, const std::string& subject, Parse parse) {
  const std::string fix = "pass the file as shmemctl wrote it, or correct its JSON";
  // The parser takes a NUL byte for the end of the text and ignores the rest, as in a truncated
  // file that the file system padded after a crash. No JSON text contains one.
  if (const std::size_t at = text.find('\0'); at != std::string::npos)
    throw input_error(subject, position_of(text, at), "invalid JSON: NUL byte", fix);
  if (const std::size_t at = too_deep_at(text); at != std::string::npos)
    throw input_error(subject, position_of(text, at),
                      "nested more than " + std::to_string(max_nesting) + " levels deep", fix);
  try {
    return parse();
  } catch (const nlohmann::json::parse_error& error) {
    const std::size_t at = error.byte == 0 ? 0 : error.byte - 1;
    throw input_error(subject, position_of(text, at),
                      trim(text).empty() ? "the file is empty" : "invalid JSON", fix);
  } catch (const nlohmann::json::exception& error) { // e.g. a number out of range
    throw input_error(subject, "", error.what(), fix);
  }
}

/// The offset after the string that begins at `at`.
std::size_t end_of_string(const std::string& text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    at += text[at] == '\\' ? 1 : 0;
  return std::min(at + 1, text.size());
}

std::size_t after_blanks(const std::string& text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

} // namespace

nlohmann::json parse_json(const std::string& text, const std::string& subject) {
  return parsed_by(text, subject, [&] { return nlohmann::json::parse(text); });
}

nlohmann::json parse_json_items(const std::string& text, const std::string& subject,
                                const std::string& key, const std::function<void()>& restart,
                                const std::function<void(nlohmann::json&&)>& take) {
  using Event = nlohmann::json::parse_event_t;
  bool is_next = false, inside = false;
  const auto filter = [&](int depth, Event event, nlohmann::json& value) {
    if (depth == 1 && event == Event::key) {
      is_next = value.get_ref<const std::string&>() == key;
    } else if (depth == 1 && event == Event::array_start && is_next) {
      inside = true;
      restart();
    } else if (depth == 1 && event == Event::array_end) {
      inside = false;
    } else if (depth == 2 && inside &&
               (event == Event::value || event == Event::object_end || event == Event::array_end)) {
      take(std::move(value));
      return false;
    }
    return true;
  };
  return parsed_by(text, subject, [&] { return nlohmann::json::parse(text, filter); });
}

std::string json_member_text(const std::string& text, const std::string& key) {
  const std::string quoted = '"' + key + '"';
  int depth = 0;
  std::size_t begin = std::string::npos; // where the current value begins
  std::string found;
  const auto finish = [&](std::size_t end) {
    if (begin != std::string::npos)
      found = text.substr(begin, end - begin);
    begin = std::string::npos;
  };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const std::size_t end = end_of_string(text, at);
      const std::size_t colon = after_blanks(text, end);
      if (depth == 1 && begin == std::string::npos && colon < text.size() && text[colon] == ':' &&
          text.compare(at, end - at, quoted) == 0) {
        begin = after_blanks(text, colon + 1);
        at = begin;
      } else {
        at = end;
      }
      continue;
    }
    if (c == '{' || c == '[')
      ++depth;
    else if (c == '}' || c == ']')
      --depth;
    if ((depth == 1 && c == ',') || (depth == 0 && c == '}'))
      finish(at);
    ++at;
  }
  return found;
}

} // namespace shmemctl
