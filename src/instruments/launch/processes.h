// The descendants of this process, from /proc.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace shmemctl {

/// A process, distinguished by its start time from a later one with the same pid.
struct ProcessName {
  pid_t pid = 0;
  pid_t parent = 0;
  std::uint64_t start = 0; ///< clock ticks since boot
  char state = '?';        ///< 'Z' is dead, but not reaped
};

/// One line of /proc/PID/stat; false for anything else. The program's name in it may hold blanks
/// and parentheses.
bool parse_stat(const std::string& text, ProcessName& process);

/// All living processes that descend from `root`, itself left out, without the children of `root`
/// that are in `excluded` and what descends from those. Empty where /proc is not mounted.
std::vector<ProcessName> descendants(pid_t root, const std::set<pid_t>& excluded);
/// Children of `root`, dead ones included.
std::set<pid_t> children(pid_t root);
/// All processes whose environment contains `entry` ("NAME=value"), as far as it can be read.
std::vector<ProcessName> processes_with(const std::string& entry);

/// Sends a signal if the process is still the one that was named.
void signal_process(const ProcessName& process, int signal);

/// While it lives, orphaned descendants become children of this process.
class Subreaper {
public:
  Subreaper();
  ~Subreaper();
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

private:
  int before_ = 0;
};

} // namespace shmemctl
