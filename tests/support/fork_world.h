// A job whose PEs are processes that the test forks, so that they can be killed and stopped.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "tests/support/thread_bootstrap.h"

namespace shmemctl::test {

/// What a PE tells the test, and the test tells it, in shared memory.
struct ForkSlot {
  std::atomic<int> state;               ///< whatever the body counts
  std::atomic<int> command;             ///< whatever the test asks for
  std::atomic<std::int64_t> changed_ns; ///< time on the steady clock
  std::atomic<int> code;
  std::array<char, 1024> text; ///< written before `state` is stored

  void say(const std::string& words) {
    const std::size_t length = std::min(words.size(), text.size() - 1);
    std::memcpy(text.data(), words.data(), length);
    text[length] = '\0';
  }
};

inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Forks at construction; kills and reaps what is left at destruction. The calling process must
/// have no other threads.
class ForkWorld {
public:
  using Body = std::function<void(Bootstrap&, ForkSlot&)>;
  /// A body that returns ends its process with status 0, one that throws with 3.
  ForkWorld(int n_pes, const Body& body) : area_(n_pes), pids_(static_cast<std::size_t>(n_pes)) {
    bytes_ = sizeof(ForkSlot) * pids_.size();
    void* memory =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw std::runtime_error("mmap of the slots");
    slots_ = static_cast<ForkSlot*>(memory);
    for (int pe = 0; pe < n_pes; ++pe)
      new (&slot(pe)) ForkSlot{};
    const pid_t parent = ::getpid();
    for (int pe = 0; pe < n_pes; ++pe) {
      const pid_t pid = ::fork();
      if (pid == 0)
        run(pe, parent, body);
      pids_[static_cast<std::size_t>(pe)] = pid;
    }
  }
  ForkWorld(const ForkWorld&) = delete;
  ForkWorld& operator=(const ForkWorld&) = delete;
  ~ForkWorld() {
    for (std::size_t pe = 0; pe < pids_.size(); ++pe)
      end(static_cast<int>(pe));
    ::munmap(slots_, bytes_);
  }

  int size() const { return static_cast<int>(pids_.size()); }
  ForkSlot& slot(int pe) { return slots_[pe]; }
  /// Sends SIGSTOP and returns when the process has stopped.
  void stop(int pe) {
    ::kill(pids_[static_cast<std::size_t>(pe)], SIGSTOP);
    int status = 0;
    ::waitpid(pids_[static_cast<std::size_t>(pe)], &status, WUNTRACED);
  }
  /// SIGKILL, without waiting for the end.
  void kill(int pe) { ::kill(pids_[static_cast<std::size_t>(pe)], SIGKILL); }
  /// How the process ended ("status 3", "signal 6"); "" while it has not, and once it is reaped.
  std::string end_text(int pe) const {
    const pid_t pid = pids_[static_cast<std::size_t>(pe)];
    siginfo_t info{};
    if (pid <= 0 ||
        ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
      return {};
    return (info.si_code == CLD_EXITED ? "status " : "signal ") + std::to_string(info.si_status);
  }
  /// Kills and reaps.
  void end(int pe) {
    pid_t& pid = pids_[static_cast<std::size_t>(pe)];
    if (pid <= 0)
      return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = 0;
  }

private:
  [[noreturn]] void run(int pe, pid_t parent, const Body& body) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent)
      ::_exit(1);
    try {
      ThreadBootstrap bootstrap(area_, pe);
      body(bootstrap, slot(pe));
    } catch (const std::exception& error) {
      slot(pe).say(error.what());
      slot(pe).state.store(-1, std::memory_order_release);
      ::_exit(3);
    }
    ::_exit(0);
  }

  BootstrapArea area_;
  std::vector<pid_t> pids_;
  ForkSlot* slots_ = nullptr;
  std::size_t bytes_ = 0;
};

} // namespace shmemctl::test
