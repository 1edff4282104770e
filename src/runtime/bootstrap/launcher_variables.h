// Rank and size of this process as its launcher left them in the environment, before any bootstrap
// is opened.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/options.h"

namespace shmemctl {

struct LauncherVariables {
  const char* launcher;
  const char* rank;
  const char* size;
};
/// In the order in which they are asked.
const std::vector<LauncherVariables>& launcher_variables();

struct RankAndSize {
  int rank = 0, size = 1;
  std::string source; ///< options or variables that gave both
};
/// BOOTSTRAP_UID_RANK and _SIZE, or else the first launcher that left both of its variables.
/// Throws Error (usage): nothing says it, only one of the two is known, or it is no number.
RankAndSize rank_and_size(const Options& options, const Environment& environment);

/// A variable that must hold a number from `minimum` on. Throws Error (usage).
int number_of_variable(const Environment& environment, const std::string& name, int minimum);

/// "host:port" with a name or an address. Throws Error (usage).
struct HostAndPort {
  std::string host;
  int port = 0;
  bool is_address = false; ///< not a name
};
HostAndPort parse_session_id(const std::string& text);

/// The rank that the launcher, or the user who started the job by hand, gave to this process; 0 if
/// it was not launched as one of several; nothing if its environment does not say.
std::optional<int> launched_rank(const Environment& environment);

/// Its rank among the processes of the job on this machine; nothing if the environment does not
/// say.
std::optional<int> launched_local_rank(const Environment& environment);

} // namespace shmemctl
