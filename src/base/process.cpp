// Starting and ending processes, and the signals that they inherit.
#include "src/base/process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "src/base/deadline.h"
#include "src/base/error.h"
#include "src/base/file_descriptor.h"

namespace shmemctl {

namespace {

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

} // namespace

SpawnSettings::SpawnSettings(bool own_group) {
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETSIGMASK | (own_group ? POSIX_SPAWN_SETPGROUP : 0)));
}

SpawnSettings::~SpawnSettings() {
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
}

int spawn(pid_t& pid, const std::string& program, std::vector<std::string> argv,
          const Environment& environment, const SpawnSettings& settings) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment)
    variables.push_back(name + "=" + value);
  return ::posix_spawn(&pid, program.c_str(), &settings.actions, &settings.attributes,
                       pointers_to(argv).data(), pointers_to(variables).data());
}

namespace {

constexpr std::size_t max_bytes = std::size_t{64} << 20;
constexpr double grace_s = 3;

Error cannot_start(const std::string& program, int number) {
  return {ExitCode::unavailable, program, "start", std::strerror(number),
          "check that it exists, and the limits of processes and files (ulimit -u, ulimit -n)"};
}

struct Pipe {
  FileDescriptor read, write;
};

Pipe make_pipe(const std::string& program) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw cannot_start(program, errno);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

pid_t start(const std::string& program, const std::vector<std::string>& argv,
            const Environment& environment, int out, int err) {
  SpawnSettings settings(true);
  posix_spawn_file_actions_addopen(&settings.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&settings.actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&settings.actions, err, STDERR_FILENO);
  pid_t pid = 0;
  if (const int failed = spawn(pid, program, argv, environment, settings); failed != 0)
    throw cannot_start(program, failed);
  return pid;
}

/// Returns true while there may be more to read.
bool read_some(FileDescriptor& from, std::string& to) {
  std::array<char, 65536> buffer{};
  const ssize_t count = ::read(from.get(), buffer.data(), buffer.size());
  if (count < 0)
    return errno == EINTR || errno == EAGAIN;
  if (count == 0) {
    from.reset();
    return false;
  }
  to.append(buffer.data(), std::min(static_cast<std::size_t>(count), max_bytes - to.size()));
  return true;
}

/// Ends a child's process group: SIGTERM first, SIGKILL later.
class Ending {
public:
  Ending(pid_t group, double timeout_s)
      : group_(group), deadline_(Deadline::after(std::chrono::duration<double>(timeout_s))) {}
  /// Sends a signal if it is due. Returns true once any signal was sent.
  bool act() {
    if (deadline_.passed() && signals_ < 2) {
      ::kill(-group_, signals_ == 0 ? SIGTERM : SIGKILL);
      ++signals_;
      deadline_ = Deadline::after(std::chrono::duration<double>(grace_s));
    }
    return signals_ > 0;
  }
  int poll_ms() const { return signals_ < 2 ? deadline_.poll_ms() : 1000; }

private:
  pid_t group_;
  Deadline deadline_;
  int signals_ = 0;
};

int wait_for(pid_t pid, Ending& ending, bool& timed_out) {
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid)
      break;
    if (ended < 0 && errno != EINTR)
      return 127; // already reaped elsewhere
    timed_out = ending.act();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

} // namespace

ChildResult run_child(const std::string& program, const std::vector<std::string>& argv,
                      const Environment& environment, double timeout_s, std::atomic<pid_t>* group) {
  Pipe out = make_pipe(program);
  Pipe err = make_pipe(program);
  const pid_t pid = start(program, argv, environment, out.write.get(), err.write.get());
  if (group)
    *group = pid;
  out.write.reset();
  err.write.reset();
  ChildResult result;
  Ending ending(pid, timeout_s);
  while (out.read || err.read) {
    std::array<pollfd, 2> ready{{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
    const int count = ::poll(ready.data(), ready.size(), ending.poll_ms());
    result.timed_out = ending.act();
    if (count <= 0)
      continue;
    if (ready[0].revents != 0)
      read_some(out.read, result.out);
    if (ready[1].revents != 0)
      read_some(err.read, result.err);
  }
  result.exit_status = wait_for(pid, ending, result.timed_out);
  if (group)
    *group = 0;
  return result;
}

} // namespace shmemctl
