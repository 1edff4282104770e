#include "src/instruments/launch/signals.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "src/base/error.h"

namespace shmemctl {

namespace {

constexpr std::array handled_signals = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                                        SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT, SIGCHLD};

bool ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

} // namespace

SignalGate::SignalGate() {
  // If SIGCHLD stayed ignored, as it may be inherited, the exit codes of children would be lost.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &standard, &child_before_);
  sigset_t events;
  sigemptyset(&events);
  for (const int signal : handled_signals)
    if (!ignored(signal))
      sigaddset(&events, signal);
  sigset_t blocked = events;
  sigaddset(&blocked, SIGPIPE); // a closed reader is noticed by EPIPE
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  descriptor_ = FileDescriptor(::signalfd(-1, &events, SFD_CLOEXEC | SFD_NONBLOCK));
  if (descriptor_)
    return;
  const int error_number = errno;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  throw system_error("signalfd", "create", error_number,
                     "raise the limit of open files: ulimit -n");
}

SignalGate::~SignalGate() {
  // Drops signals that are still pending: SIGPIPE would end this process when it is unblocked.
  sigset_t own;
  sigemptyset(&own);
  for (const int signal : {SIGPIPE, SIGCHLD, SIGCONT, SIGWINCH})
    if (sigismember(&before_, signal) == 0)
      sigaddset(&own, signal);
  const timespec at_once{};
  while (::sigtimedwait(&own, nullptr, &at_once) > 0) {
  }
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalGate::next() {
  signalfd_siginfo info{};
  if (::read(descriptor_.get(), &info, sizeof info) != sizeof info)
    return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void SignalGate::stop_here() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);
  // The pending signal stops the process here.
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
}

void SignalGate::restore_in_child() const {
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

TerminalInput::TerminalInput(int terminal, FileDescriptor pipe)
    : terminal_(terminal), pipe_(std::move(pipe)) {
  ::fcntl(pipe_.get(), F_SETFL, ::fcntl(pipe_.get(), F_GETFL) | O_NONBLOCK);
}

bool TerminalInput::wants_read() const {
  return open() && waiting_.empty() && ::tcgetpgrp(terminal_) == ::getpgrp();
}

void TerminalInput::read() {
  char line[4096]; // the longest line of a terminal
  const ssize_t count = ::read(terminal_, line, sizeof line);
  if (count < 0 && (errno == EINTR || errno == EAGAIN))
    return;
  if (count <= 0) { // the user typed end of file, or the terminal was closed
    close();
    return;
  }
  waiting_.assign(line, static_cast<std::size_t>(count));
  write();
}

void TerminalInput::write() {
  const ssize_t count = ::write(pipe_.get(), waiting_.data(), waiting_.size());
  if (count > 0)
    waiting_.erase(0, static_cast<std::size_t>(count));
  else if (count < 0 && errno != EAGAIN && errno != EINTR)
    close(); // PE 0 does not read any more
}

} // namespace shmemctl
