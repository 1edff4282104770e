// A job whose PEs are processes: what can be killed, stopped and started again.
#pragma once

#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/runtime/bootstrap/uid_bootstrap.h"

namespace shmemctl::test {

/// How one process ended: the message of its Error, "" if it had none; or the signal.
struct PeResult {
  int signal = 0;
  std::string message;
  ExitCode code = ExitCode::ok;
};

/// Forks PEs before the parent has any thread, sends them the id when it exists, and collects their
/// results. The parent holds the rendezvous.
class ProcessWorld {
public:
  using Body = std::function<void(int pe, UidArguments arguments)>;

  ProcessWorld(int n_pes, const Body& body, double timeout_s = 60) {
    for (int pe = 0; pe < n_pes; ++pe)
      start(pe, n_pes, body);
    rendezvous_ = Rendezvous::start({}, timeout_s);
    const std::string id = rendezvous_->id().text() + "\n";
    for (Child& child : children_)
      written_ = write(child.id.get(), id.data(), id.size()) == static_cast<ssize_t>(id.size()) &&
                 written_;
  }
  ~ProcessWorld() {
    for (const Child& child : children_)
      if (child.pid > 0)
        kill(child.pid, SIGKILL);
    for (Child& child : children_)
      finish(child);
  }
  ProcessWorld(const ProcessWorld&) = delete;
  ProcessWorld& operator=(const ProcessWorld&) = delete;

  pid_t pid(int pe) const { return children_[static_cast<std::size_t>(pe)].pid; }
  /// Waits for the end of a PE.
  PeResult result(int pe) { return finish(children_[static_cast<std::size_t>(pe)]); }
  bool well() const { return written_; }

private:
  struct Child {
    pid_t pid = -1;
    FileDescriptor id, report;
  };

  void start(int pe, int n_pes, const Body& body) {
    int id[2], report[2];
    if (pipe(id) != 0 || pipe(report) != 0)
      throw system_error("a pipe", "make", errno, "raise the limit of open files");
    Child child;
    child.pid = fork();
    if (child.pid == 0) {
      children_.clear();
      close(id[1]);
      close(report[0]);
      run(pe, n_pes, body, FileDescriptor(id[0]), FileDescriptor(report[1]));
      _exit(0);
    }
    child.id = FileDescriptor(id[1]);
    child.report = FileDescriptor(report[0]);
    close(id[0]);
    close(report[1]);
    children_.push_back(std::move(child));
  }

  static std::string read_text(int descriptor, bool one_line) {
    std::string text;
    char byte = 0;
    while (read(descriptor, &byte, 1) == 1 && !(one_line && byte == '\n'))
      text += byte;
    return text;
  }

  /// noexcept: a child that throws would otherwise go on with the tests after this one.
  static void run(int pe, int n_pes, const Body& body, FileDescriptor id,
                  FileDescriptor report) noexcept {
    std::string line;
    try {
      UidArguments arguments;
      arguments.rank = pe;
      arguments.size = n_pes;
      arguments.id = UniqueId::parse(read_text(id.get(), true));
      body(pe, std::move(arguments));
    } catch (const Error& error) {
      line = std::to_string(static_cast<int>(error.code())) + " " + error.message();
    }
    if (write(report.get(), line.data(), line.size()) < 0)
      _exit(1);
  }

  static PeResult finish(Child& child) {
    PeResult result;
    if (child.pid <= 0)
      return result;
    const std::string text = read_text(child.report.get(), false);
    int status = 0;
    waitpid(child.pid, &status, 0);
    child.pid = -1;
    result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (const std::size_t blank = text.find(' '); blank != std::string::npos) {
      result.code = static_cast<ExitCode>(std::stoi(text));
      result.message = text.substr(blank + 1);
    }
    return result;
  }

  std::vector<Child> children_;
  std::unique_ptr<Rendezvous> rendezvous_;
  bool written_ = true;
};

} // namespace shmemctl::test
