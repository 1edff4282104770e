// Keeps a library from taking over the program's signal handlers.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>

namespace shmemctl {

/// Remembers the handlers of the signals that end programs, and puts back those that changed when
/// it goes. Open MPI and UCX install handlers that print stack traces, and OpenSHMEM's
/// initialisation makes SIGTERM do nothing.
class SignalDispositions {
public:
  SignalDispositions() {
    for (std::size_t at = 0; at < signals.size(); ++at)
      known_[at] = ::sigaction(signals[at], nullptr, &before_[at]) == 0;
  }
  SignalDispositions(const SignalDispositions&) = delete;
  SignalDispositions& operator=(const SignalDispositions&) = delete;
  ~SignalDispositions() {
    for (std::size_t at = 0; at < signals.size(); ++at)
      if (known_[at])
        ::sigaction(signals[at], &before_[at], nullptr);
  }

private:
  static constexpr std::array signals = {SIGHUP, SIGINT,  SIGQUIT, SIGILL,  SIGABRT, SIGBUS,
                                         SIGFPE, SIGUSR1, SIGSEGV, SIGUSR2, SIGTERM};
  std::array<struct sigaction, signals.size()> before_{};
  std::array<bool, signals.size()> known_{};
};

} // namespace shmemctl
