// Starting and ending processes, and the signals that they inherit.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <pthread.h>
#include <spawn.h>
#include <string>
#include <sys/types.h>
#include <vector>

#include "src/base/options.h"

namespace shmemctl {

/// Saves the handlers of the signals that end programs; the destructor restores those that changed.
/// Open MPI and UCX install handlers that print stack traces, and OpenSHMEM's initialisation makes
/// SIGTERM ineffective.
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

/// While an object exists, this thread runs no signal handlers, except for the signals that `but`
/// names.
class SignalsBlocked {
public:
  enum class But {
    nothing,
    faults ///< synchronous signals of the thread itself: SIGSEGV and the like
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

/// The attributes of a new process. It blocks no signals, whatever this process blocks.
class SpawnSettings {
public:
  /// @param own_group whether the new process leads its own process group, so that signals reach
  /// its children too
  explicit SpawnSettings(bool own_group);
  ~SpawnSettings();
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions{}; ///< file actions, which the caller may add to
  posix_spawnattr_t attributes{};
};

/// Starts a process. Returns 0 and sets `pid`, or returns an errno.
int spawn(pid_t& pid, const std::string& program, std::vector<std::string> argv,
          const Environment& environment, const SpawnSettings& settings);

struct ChildResult {
  int exit_status = 0;    ///< exit code, 128 + signal, or 127 if reaped elsewhere
  bool timed_out = false; ///< it was killed because the timeout passed
  std::string out, err;   ///< its output, each cut at 64 MiB
};

/// Runs a program with stdin at /dev/null, reads its output and waits for its end. It leads its own
/// process group. At the timeout the group receives SIGTERM, and SIGKILL three seconds later. Safe
/// while other threads run. Throws Error (unavailable) if the program cannot be started.
/// @param program     file to execute; argv[0] is only its name
/// @param environment the whole environment of the program
/// @param group       contains the program's process group while it runs, otherwise 0, so that
///                    another thread can end it earlier; may be nullptr
ChildResult run_child(const std::string& program, const std::vector<std::string>& argv,
                      const Environment& environment, double timeout_s,
                      std::atomic<pid_t>* group = nullptr);

} // namespace shmemctl
