#include "src/base/signal_name.h"

#include <csignal>

namespace shmemctl {

// The oldest C library that this binary supports does not have sigabbrev_np(3).
std::string signal_name(int signal) {
  switch (signal) {
#define NAMED(name)                                                                                \
  case name:                                                                                       \
    return #name
    NAMED(SIGHUP);
    NAMED(SIGINT);
    NAMED(SIGQUIT);
    NAMED(SIGILL);
    NAMED(SIGTRAP);
    NAMED(SIGABRT);
    NAMED(SIGBUS);
    NAMED(SIGFPE);
    NAMED(SIGKILL);
    NAMED(SIGUSR1);
    NAMED(SIGSEGV);
    NAMED(SIGUSR2);
    NAMED(SIGPIPE);
    NAMED(SIGALRM);
    NAMED(SIGTERM);
    NAMED(SIGSTKFLT);
    NAMED(SIGCHLD);
    NAMED(SIGCONT);
    NAMED(SIGSTOP);
    NAMED(SIGTSTP);
    NAMED(SIGTTIN);
    NAMED(SIGTTOU);
    NAMED(SIGURG);
    NAMED(SIGXCPU);
    NAMED(SIGXFSZ);
    NAMED(SIGVTALRM);
    NAMED(SIGPROF);
    NAMED(SIGWINCH);
    NAMED(SIGPOLL);
    NAMED(SIGPWR);
    NAMED(SIGSYS);
#undef NAMED
  default:
    return "signal " + std::to_string(signal);
  }
}

} // namespace shmemctl
