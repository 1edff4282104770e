// Runs a function in child processes, each a PE, and tells how they ended.
#pragma once

#include <csignal>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"

namespace shmemctl::test {

/// How a child ended: "" if its function returned; what it threw; or "signal 9".
using ChildEnds = std::vector<std::string>;

/// A failed expectation in a child (GoogleTest's would be lost in a child).
inline void require(bool condition, const std::string& what) {
  if (!condition)
    throw std::runtime_error("not true: " + what);
}

class ForkedPes {
public:
  /// Children die with this process. The caller has no other threads.
  ForkedPes(int n_pes, const std::function<void(int pe)>& body) {
    for (int pe = 0; pe < n_pes; ++pe)
      start(pe, body);
  }
  ForkedPes(const ForkedPes&) = delete;
  ForkedPes& operator=(const ForkedPes&) = delete;
  ~ForkedPes() {
    for (const Child& child : children_)
      if (child.pid > 0) {
        ::kill(child.pid, SIGKILL);
        ::waitpid(child.pid, nullptr, 0);
      }
  }

  pid_t pid(int pe) const { return children_[static_cast<std::size_t>(pe)].pid; }

  /// Waits for all.
  ChildEnds ends() {
    ChildEnds ends;
    for (Child& child : children_)
      ends.push_back(end_of(child));
    return ends;
  }

private:
  struct Child {
    pid_t pid = -1;
    FileDescriptor output;
  };

  void start(int pe, const std::function<void(int)>& body) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw std::runtime_error("pipe2");
    FileDescriptor reader(ends[0]), writer(ends[1]);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0)
      throw std::runtime_error("fork");
    if (pid > 0) {
      children_.push_back({pid, std::move(reader)});
      return;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent)
      ::_exit(99);
    reader.reset();
    children_.clear(); // closes the earlier ones' pipes
    run_child(pe, body, writer);
  }

  [[noreturn]] static void run_child(int pe, const std::function<void(int)>& body,
                                     const FileDescriptor& writer) {
    std::string end;
    try {
      body(pe);
    } catch (const Error& error) {
      end = error.message() + " | " + error.fix();
    } catch (const std::exception& error) {
      end = error.what();
    }
    if (!end.empty() && ::write(writer.get(), end.data(), end.size()) < 0)
      ::_exit(98);
    ::_exit(0);
  }

  static std::string end_of(Child& child) {
    std::string text;
    char block[4096];
    for (ssize_t size; (size = ::read(child.output.get(), block, sizeof block)) > 0;)
      text.append(block, static_cast<std::size_t>(size));
    int status = 0;
    ::waitpid(child.pid, &status, 0);
    child.pid = -1;
    if (WIFSIGNALED(status))
      return "signal " + std::to_string(WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
      return "exit " + std::to_string(WEXITSTATUS(status)) + ": " + text;
    return text;
  }

  std::vector<Child> children_;
};

/// How many descriptors this process has.
inline std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

} // namespace shmemctl::test
