#include "cli/terminal.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/runtime/bootstrap/select.h"

namespace shmemctl {

namespace {

bool set(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found != environment.end() && !found->second.empty();
}

std::string terminal_variable(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

bool outlives_reader = false;

/// Whether the reading end of this pipe, or the other end of this socket, is closed.
bool nobody_reads(int descriptor) {
  pollfd end{descriptor, 0, 0};
  return ::poll(&end, 1, 0) == 1 && (end.revents & (POLLERR | POLLHUP)) != 0;
}

/// Whether the launcher gives processes a terminal although it has none itself, as Open MPI's does.
/// `srun --pty` and `mpiexec.hydra` do so only if they have one.
bool launcher_makes_terminals(const Environment& environment) {
  return set(environment, "OMPI_COMM_WORLD_SIZE") || set(environment, "PRTE_LAUNCHED");
}

} // namespace

bool is_terminal(int descriptor, const Environment& environment) {
  return ::isatty(descriptor) == 1 && !launcher_makes_terminals(environment) &&
         launched_size(environment) <= 1;
}

int terminal_width(const Environment& environment) {
  winsize size{};
  return is_terminal(STDOUT_FILENO, environment) && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0
             ? size.ws_col
             : 0;
}

int help_width(const Environment& environment) {
  constexpr int usual = 80, longest = 100;
  const int terminal = terminal_width(environment);
  const long long columns =
      terminal > 0 ? terminal
                   : parse_integer(terminal_variable(environment, "COLUMNS")).value_or(usual);
  return static_cast<int>(std::clamp<long long>(columns > 0 ? columns : usual, 0, longest));
}

bool wants_color(const std::string& color, const Environment& environment) {
  if (color != "auto")
    return color == "always";
  if (set(environment, "NO_COLOR"))
    return false;
  for (const char* name : {"CLICOLOR_FORCE", "FORCE_COLOR"})
    if (set(environment, name) && terminal_variable(environment, name) != "0")
      return true;
  return terminal_variable(environment, "CLICOLOR") != "0" &&
         terminal_variable(environment, "TERM") != "dumb" &&
         is_terminal(STDOUT_FILENO, environment);
}

void hold_standard_descriptors() {
  for (const auto& [descriptor, mode] :
       {std::pair(STDIN_FILENO, O_RDONLY), std::pair(STDOUT_FILENO, O_RDONLY), // refuses writes
        std::pair(STDERR_FILENO, O_WRONLY)})
    if (::fcntl(descriptor, F_GETFD) < 0)
      static_cast<void>(::open("/dev/null", mode)); // open() returns the lowest number that is free
}

void outlive_reader_of_stdout() {
  outlives_reader = true;
  // SIGPIPE is handled for the whole process, because many places write to stdout, and to stderr,
  // whose reader often goes away at the same time. By a handler, because child processes would
  // inherit SIG_IGN.
  struct sigaction action {};
  if (::sigaction(SIGPIPE, nullptr, &action) != 0 || action.sa_handler != SIG_DFL)
    return;
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGPIPE, &action, nullptr);
}

bool require_stdout() {
  errno = 0;
  std::cout.flush();
  const int error_number = errno;
  if (std::cout)
    return true;
  if (outlives_reader && nobody_reads(STDOUT_FILENO))
    return false;
  const bool closed =
      (::fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY; // hold_standard_descriptors()
  throw Error(ExitCode::unavailable, "stdout", "write",
              closed              ? "it is closed"
              : error_number != 0 ? std::strerror(error_number)
                                  : "short write",
              closed ? "leave stdout open, redirect it to a file, or pass --quiet"
                     : "choose another file or pipe for it or, if its disk is full, free space");
}

} // namespace shmemctl
