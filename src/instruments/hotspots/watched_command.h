// A command that runs while something else is measured.
#pragma once

#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/file_descriptor.h"
#include "src/base/options.h"
#include "src/instruments/launch/guard.h"
#include "src/instruments/launch/processes.h"

namespace shmemctl {

struct CommandEnd {
  std::optional<int> exit_code; ///< empty if a signal ended it
  std::string signal;           ///< "SIGKILL"; "" if it exited
  bool timed_out = false;
  double time_s = 0;
};

/// Finds everything that a watched command has started, including processes that left its process
/// group or their parent: orphans become children of this process. If this process is killed, its
/// guard kills them all.
class CommandKeeper {
public:
  /// Forks; construct while this process has one thread. Throws Error (unavailable).
  CommandKeeper();
  /// The environment with the variable by which the guard recognises the command's processes.
  Environment marked(Environment environment) const;
  /// Sends a signal to every living process of the command; 0 sends nothing and only tests for
  /// them. Returns false if there is no such process.
  bool signal_all(int signal) const;

private:
  std::set<pid_t> foreign_; ///< children that this process had before, and the guard process
  Guard guard_;
  Subreaper subreaper_;
  std::string id_;
};

/// Starts a program with this process's stdin and stderr, and watches it. On a terminal it stays in
/// this process's group, as a shell's commands do, so that it may read; elsewhere it leads its own
/// group, which receives signals as a whole.
class WatchedCommand {
public:
  /// @param program       file to execute
  /// @param data_is_ours  stdout carries this process's data: the command's goes to stderr
  /// @param keeper        finds what the command starts; without one only the command (on a
  /// terminal) or its process group is signalled
  /// Throws Error: usage if it cannot be executed, unavailable if it cannot be started.
  WatchedCommand(const std::string& program, const std::vector<std::string>& argv,
                 const Environment& environment, bool data_is_ours,
                 const CommandKeeper* keeper = nullptr);
  WatchedCommand(const WatchedCommand&) = delete;
  WatchedCommand& operator=(const WatchedCommand&) = delete;
  /// Kills it if it still runs.
  ~WatchedCommand();

  /// True once it has ended; never blocks.
  bool ended();
  /// Waits at most `max_s` seconds for its end.
  void wait(double max_s) const;
  /// How it ended. Only after ended().
  const CommandEnd& end() const { return end_; }
  /// Ends the command after its timeout: sends SIGTERM, and SIGKILL 3 s later. Call repeatedly
  /// until ended().
  void time_out();
  /// Forwards a signal to the command, unless the terminal has sent it there as well. The second
  /// signal is replaced by SIGKILL. May be called from any thread.
  void hand_on(int signal, bool from_terminal);
  /// True once a signal was forwarded.
  bool interrupted() const { return interruptions_.load() > 0; }
  /// After ended(): sends SIGTERM to remaining processes, and SIGKILL 3 s later.
  void end_rest() const;

private:
  void send(int signal) const;
  /// SIGKILL to all processes of the command.
  void kill_all() const;

  const CommandKeeper* keeper_;
  pid_t pid_ = -1;
  FileDescriptor pidfd_; ///< none on kernels before 5.3
  bool own_group_ = false;
  bool ended_ = false;
  std::atomic<int> interruptions_{0};
  std::atomic<bool> alive_{true};
  std::optional<Deadline> kill_at_;
  Deadline::Clock::time_point started_ = Deadline::Clock::now();
  CommandEnd end_;
};

} // namespace shmemctl
