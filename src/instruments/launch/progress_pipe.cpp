#include "src/instruments/launch/progress_pipe.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/process.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

/// Below PIPE_BUF, so that a line is written as a whole.
constexpr std::size_t max_line_bytes = 250;

std::string inode_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode)
             ? std::to_string(status.st_ino)
             : "";
}

} // namespace

std::string progress_value(int write_end) {
  return std::to_string(write_end) + ":" + inode_of(write_end);
}

FileDescriptor open_progress_pipe(const Environment& environment) {
  const auto found = environment.find(progress_variable);
  if (found == environment.end())
    return {};
  const std::size_t colon = found->second.find(':');
  const auto number = parse_integer(found->second.substr(0, colon));
  if (colon == std::string::npos || !number || *number <= STDERR_FILENO || *number > 1 << 20)
    return {};
  const int descriptor = static_cast<int>(*number);
  const std::string inode = inode_of(descriptor);
  if (inode.empty() || found->second.substr(colon + 1) != inode ||
      ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
    return {};
  return FileDescriptor(descriptor);
}

void send_progress(int pipe, const std::string& words) {
  if (words.empty())
    return;
  const std::string line =
      printable(words, max_line_bytes - 1).substr(0, max_line_bytes - 1) + "\n";
  const SignalsBlocked no_sigpipe; // while blocked, SIGPIPE stays pending, and is consumed below
  if (::write(pipe, line.data(), line.size()) < 0 && errno == EPIPE) {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGPIPE);
    const timespec at_once{};
    ::sigtimedwait(&set, nullptr, &at_once);
  }
}

std::string last_progress(int read_end) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = ::read(read_end, buffer.data(), buffer.size())) != 0;) {
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  const std::size_t end = text.rfind('\n');
  if (end == std::string::npos || end == 0)
    return "";
  const std::size_t begin = text.rfind('\n', end - 1);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1));
}

} // namespace shmemctl
