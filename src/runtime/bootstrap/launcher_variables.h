// Rank and size of this process according to the environment variables of its launcher. They are
// available before a bootstrap is opened.
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
/// The variables of each launcher, in the order in which the launchers are tried.
const std::vector<LauncherVariables>& launcher_variables();

struct RankAndSize {
  int rank = 0, size = 1;
  std::string source; ///< options or variables that gave both
};
/// From BOOTSTRAP_UID_RANK and _SIZE, or else from the first launcher whose two variables are set.
/// Throws Error (usage) if there are no such variables, only one of the two options is set, or a
/// value is not a number.
RankAndSize rank_and_size(const Options& options, const Environment& environment);

/// The value of a variable, which must be a number of at least `minimum`. Throws Error (usage).
int number_of_variable(const Environment& environment, const std::string& name, int minimum);

struct HostAndPort {
  std::string host;
  int port = 0;
  bool is_address = false; ///< whether `host` is an address, and not a name
};
/// Parses "host:port" with a name or an address. Throws Error (usage).
HostAndPort parse_session_id(const std::string& text);

/// The rank that the launcher, or the user who started the job by hand, gave to this process; 0 if
/// it was not launched as one of several; nothing if its environment does not say.
std::optional<int> launched_rank(const Environment& environment);

/// The number of workers if torchrun started this process as one of several, otherwise 1. torchrun
/// serves no bootstrap, and launched_size() and launcher_name() do not look at its variables.
long long torchrun_workers(const Environment& environment);

/// The rank of this process among the processes of the job on this machine; nothing if the
/// environment does not say.
std::optional<int> launched_local_rank(const Environment& environment);

} // namespace shmemctl
