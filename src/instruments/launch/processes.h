// The descendants of this process, from /proc.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace shmemctl {

/// A process. Its start time distinguishes it from a later process with the same PID.
struct ProcessName {
  pid_t pid = 0;
  pid_t parent = 0;
  std::uint64_t start = 0; ///< clock ticks since boot
  char state = '?';        ///< 'Z': dead, but not reaped
};

/// Parses /proc/PID/stat; false for anything else. The program's name in it may contain blanks and
/// parentheses.
bool parse_stat(const std::string& text, ProcessName& process);

/// All living processes that descend from `root`, without `root` itself, and without those of its
/// children that are in `excluded` and the descendants of these. Empty if /proc is not mounted.
std::vector<ProcessName> descendants(pid_t root, const std::set<pid_t>& excluded);
/// Children of `root`, including dead ones.
std::set<pid_t> children(pid_t root);
/// All processes whose environment contains `entry` ("NAME=value"). Processes whose environment
/// cannot be read are not found.
std::vector<ProcessName> processes_with(const std::string& entry);

/// Sends a signal if the process is still the one that was named.
void signal_process(const ProcessName& process, int signal);

/// While it exists, orphaned descendants become children of this process.
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
