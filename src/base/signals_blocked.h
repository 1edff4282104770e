// Signals that do not reach a thread for a while, nor the threads that it starts meanwhile.
#pragma once

#include <csignal>
#include <pthread.h>

namespace shmemctl {

/// No signal handler of this thread runs while one exists.
class SignalsBlocked {
public:
  enum class But {
    nothing,
    faults ///< what the thread itself does wrong: SIGSEGV and the like
  };
  explicit SignalsBlocked(But but = But::nothing) {
    sigset_t set;
    ::sigfillset(&set);
    if (but == But::faults)
      for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
        ::sigdelset(&set, fault);
    ::pthread_sigmask(SIG_SETMASK, &set, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
  sigset_t before_{};
};

} // namespace shmemctl
