#include "src/launch/signals.h"

#include <array>
#include <cerrno>
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
  // Inherited SIG_IGN for SIGCHLD would lose the exit codes of children.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &standard, &child_before_);
  sigset_t events;
  sigemptyset(&events);
  for (const int signal : handled_signals)
    if (!ignored(signal))
      sigaddset(&events, signal);
  sigset_t blocked = events;
  sigaddset(&blocked, SIGPIPE); // a reader that goes away is seen as EPIPE
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
  // What is still pending would end this process now.
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
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr); // here the process stops
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
}

void SignalGate::restore_in_child() const {
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

} // namespace shmemctl
