#include "src/instruments/launch/guard.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "src/base/error.h"
#include "src/instruments/launch/processes.h"

namespace shmemctl {

namespace {

constexpr char goodbye = '\x04';

/// Closes inherited descriptors, so that the guard does not hold pipes open.
void close_all_but(int kept) {
  const int null = ::open("/dev/null", O_RDWR);
  for (int standard = 0; standard <= 2 && null >= 0; ++standard)
    ::dup2(null, standard);
  const long most = ::sysconf(_SC_OPEN_MAX);
#if defined(SYS_close_range)
  if (kept > 3)
    ::syscall(SYS_close_range, 3U, static_cast<unsigned>(kept - 1), 0U);
  if (::syscall(SYS_close_range, static_cast<unsigned>(kept + 1), ~0U, 0U) == 0)
    return;
#endif
  for (int other = 3; other < most; ++other)
    if (other != kept)
      ::close(other);
}

/// What was written to the pipe until its end. Returns early at a goodbye.
std::string read_all(int pipe) {
  std::string text;
  char part[512];
  for (;;) {
    const ssize_t count = ::read(pipe, part, sizeof part);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return text;
    text.append(part, static_cast<std::size_t>(count));
    if (text.back() == goodbye)
      return text;
  }
}

/// Repeats until two scans in a row find nothing, because new processes may start while others are
/// killed.
void kill_all_with(const std::string& entry) {
  constexpr int max_rounds = 500;
  int quiet_rounds = 0;
  for (int round = 0; round < max_rounds && quiet_rounds < 2; ++round) {
    bool found = false;
    for (const ProcessName& process : processes_with(entry)) {
      if (process.pid == ::getpid())
        continue;
      signal_process(process, SIGKILL);
      found = true;
    }
    quiet_rounds = found ? 0 : quiet_rounds + 1;
    // Gives the kernel time to end the processes.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

[[noreturn]] void run_guard(int pipe) {
  ::setsid(); // leaves the terminal's process group, so that the guard does not get its signals
  ::prctl(PR_SET_NAME, "shmemctl-guard", 0, 0, 0);
  close_all_but(pipe);
  const std::string text = read_all(pipe);
  if (!text.empty() && text.back() != goodbye) {
    const std::size_t line = text.find('\n');
    if (line != std::string::npos)
      kill_all_with(text.substr(0, line));
  }
  ::_exit(0);
}

} // namespace

Guard::Guard() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw system_error("pipe", "create", errno, "raise the limit of open files (ulimit -n)");
  const FileDescriptor read_end(ends[0]);
  pipe_ = FileDescriptor(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0)
    throw system_error("guard process", "fork", errno, "raise the limit of processes (ulimit -u)");
  if (pid_ == 0) {
    pipe_.reset();
    run_guard(read_end.get());
  }
}

Guard::~Guard() {
  // The write cannot block: the pipe contains one short line.
  while (::write(pipe_.get(), &goodbye, 1) < 0 && errno == EINTR) {
  }
  pipe_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guard::watch(const std::string& entry) {
  const std::string line = entry + "\n";
  while (::write(pipe_.get(), line.data(), line.size()) < 0 && errno == EINTR) {
  }
}

} // namespace shmemctl
