#include "src/check/watched_command.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/launch/program.h"

namespace shmemctl {

namespace {

constexpr double grace_s = 3;

class SpawnSettings {
public:
  SpawnSettings(bool own_group, bool stdout_to_stderr) {
    posix_spawn_file_actions_init(&actions);
    if (stdout_to_stderr)
      posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none); // this process blocks signals that the command has to get
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes,
        static_cast<short>(POSIX_SPAWN_SETSIGMASK | (own_group ? POSIX_SPAWN_SETPGROUP : 0)));
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string signal_name(int signal) {
  const char* const abbreviation = ::sigabbrev_np(signal);
  return abbreviation ? std::string("SIG") + abbreviation : fmt::format("signal {}", signal);
}

} // namespace

WatchedCommand::WatchedCommand(const std::string& program, const std::vector<std::string>& argv,
                               const Environment& environment, bool data_is_ours)
    : own_group_(::isatty(STDIN_FILENO) != 1) {
  const SpawnSettings settings(own_group_, data_is_ours);
  std::vector<std::string> words = argv, variables;
  for (const auto& [name, value] : environment)
    variables.push_back(name + "=" + value);
  const int failed = ::posix_spawn(&pid_, program.c_str(), &settings.actions, &settings.attributes,
                                   pointers_to(words).data(), pointers_to(variables).data());
  if (failed == EAGAIN || failed == ENOMEM)
    throw system_error(program, "start", failed,
                       "look at the limits of processes and memory (ulimit -u, ulimit -v)");
  if (failed != 0)
    throw cannot_run(program, failed);
}

WatchedCommand::~WatchedCommand() {
  if (ended())
    return;
  send(SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

void WatchedCommand::send(int signal) const {
  if (alive_)
    ::kill(own_group_ ? -pid_ : pid_, signal);
}

bool WatchedCommand::ended() {
  if (ended_)
    return true;
  int status = 0;
  const pid_t waited = ::waitpid(pid_, &status, WNOHANG);
  if (waited == 0 || (waited < 0 && errno == EINTR))
    return false;
  ended_ = true;
  alive_ = false;
  end_.time_s = std::chrono::duration<double>(Deadline::Clock::now() - started_).count();
  if (waited < 0)
    end_.signal = "unknown: somebody else waited for it";
  else if (WIFSIGNALED(status))
    end_.signal = signal_name(WTERMSIG(status));
  else
    end_.exit_code = WEXITSTATUS(status);
  return true;
}

void WatchedCommand::time_out() {
  if (!kill_at_) {
    end_.timed_out = true;
    send(SIGTERM);
    kill_at_ = Deadline::after(std::chrono::duration<double>(grace_s));
  } else if (kill_at_->passed()) {
    send(SIGKILL);
  }
}

void WatchedCommand::hand_on(int signal, bool from_terminal) {
  if (interruptions_++ > 0)
    send(SIGKILL);
  else if (own_group_ || !from_terminal)
    send(signal);
}

} // namespace shmemctl
