#include "src/instruments/hotspots/watched_command.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/process.h"
#include "src/base/secret.h"
#include "src/base/signal_name.h"
#include "src/instruments/launch/spawn.h"

namespace shmemctl {

namespace {

constexpr double grace_s = 3;

constexpr const char* id_variable = "SHMEMCTL_DURING_ID";

std::string random_id() {
  std::string text;
  for (const std::uint8_t byte : random_secret())
    text += fmt::format("{:02x}", byte);
  return text;
}

} // namespace

CommandKeeper::CommandKeeper() : foreign_(children(::getpid())), id_(random_id()) {
  foreign_.insert(guard_.pid());
  guard_.watch(std::string(id_variable) + "=" + id_);
}

Environment CommandKeeper::marked(Environment environment) const {
  environment[id_variable] = id_;
  return environment;
}

bool CommandKeeper::signal_all(int signal) const {
  const std::vector<ProcessName> processes = descendants(::getpid(), foreign_);
  for (const ProcessName& process : processes) {
    signal_process(process, signal);
    if (signal != 0)
      signal_process(process, SIGCONT); // a stopped process cannot act on the signal
  }
  return !processes.empty();
}

WatchedCommand::WatchedCommand(const std::string& program, const std::vector<std::string>& argv,
                               const Environment& environment, bool data_is_ours,
                               const CommandKeeper* keeper)
    : keeper_(keeper), own_group_(::isatty(STDIN_FILENO) != 1) {
  SpawnSettings settings(own_group_);
  if (data_is_ours)
    posix_spawn_file_actions_adddup2(&settings.actions, STDERR_FILENO, STDOUT_FILENO);
  const int failed =
      spawn(pid_, program, argv, keeper_ ? keeper_->marked(environment) : environment, settings);
  if (failed == EAGAIN || failed == ENOMEM)
    throw system_error(program, "start", failed,
                       "check the limits of processes and memory (ulimit -u, ulimit -v)");
  if (failed != 0)
    throw cannot_execute(program, program, failed);
  pidfd_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

WatchedCommand::~WatchedCommand() {
  if (ended())
    return;
  kill_all();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

void WatchedCommand::send(int signal) const {
  if (alive_)
    ::kill(own_group_ ? -pid_ : pid_, signal);
}

void WatchedCommand::kill_all() const {
  send(SIGKILL);
  if (keeper_)
    keeper_->signal_all(SIGKILL);
}

void WatchedCommand::end_rest() const {
  constexpr double last_resort_s = 10; // maximum wait for the kernel to end killed processes
  constexpr std::chrono::milliseconds look_again{10};
  if (!keeper_ || !keeper_->signal_all(SIGTERM))
    return;
  const Deadline kill_at = Deadline::after(std::chrono::duration<double>(grace_s));
  const Deadline give_up = Deadline::after(std::chrono::duration<double>(grace_s + last_resort_s));
  while (keeper_->signal_all(kill_at.passed() ? SIGKILL : 0) && !give_up.passed())
    std::this_thread::sleep_for(look_again);
}

void WatchedCommand::wait(double max_s) const {
  constexpr double poll_interval_s = 0.005;
  if (!pidfd_) {
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(max_s, poll_interval_s)));
    return;
  }
  pollfd end{pidfd_.get(), POLLIN, 0};
  const Deadline deadline = Deadline::after(std::chrono::duration<double>(max_s));
  ::poll(&end, 1, deadline.poll_ms());
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
    kill_all();
  }
}

void WatchedCommand::hand_on(int signal, bool from_terminal) {
  if (interruptions_++ > 0)
    kill_all();
  else if (own_group_ || !from_terminal)
    send(signal);
}

} // namespace shmemctl
