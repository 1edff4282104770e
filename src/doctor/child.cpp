#include "src/doctor/child.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/file_descriptor.h"

namespace shmemctl::doctor {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t max_answer_bytes = 1 << 20;

[[noreturn]] void answer_in_child(const std::function<std::string()>& answer, int descriptor) {
  std::string text;
  try {
    text = answer();
  } catch (const std::exception&) {
    ::_exit(1);
  }
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(descriptor, text.data() + done, text.size() - done);
    if (count <= 0)
      break;
    done += static_cast<std::size_t>(count);
  }
  ::_exit(0); // not exit(): the parent's buffers and destructors are not the child's to run
}

/// Everything the child writes until it closes the pipe; false if the deadline passed first.
bool read_answer(int descriptor, Clock::time_point deadline, std::string& text) {
  while (text.size() < max_answer_bytes) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0)
      return false;
    pollfd entry{descriptor, POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(left.count())) <= 0)
      continue;
    char buffer[4096];
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return true;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return true;
}

} // namespace

ChildAnswer ask_child(const std::function<std::string()>& answer, const std::string& call,
                      std::chrono::milliseconds deadline) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return {"", std::string("pipe2: ") + std::strerror(errno)};
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0)
    return {"", std::string("fork: ") + std::strerror(errno)};
  if (child == 0)
    answer_in_child(answer, write_end.get());
  write_end.reset();
  ChildAnswer result;
  const bool in_time = read_answer(read_end.get(), Clock::now() + deadline, result.text);
  if (!in_time)
    ::kill(child, SIGKILL);
  int status = 0;
  // A child stuck in the kernel cannot be reaped; it must not hang us as well.
  while (::waitpid(child, &status, in_time ? 0 : WNOHANG) < 0 && errno == EINTR) {
  }
  if (!in_time)
    result.problem = call + " did not return within " + std::to_string(deadline.count()) + " ms";
  else if (WIFSIGNALED(status))
    result.problem = call + " died of signal " + std::to_string(WTERMSIG(status));
  else if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    result.problem = call + " failed";
  return result;
}

} // namespace shmemctl::doctor
