// Which process of its job this one is, before any bootstrap has been opened.
#pragma once

#include <optional>

#include "src/base/options.h"

namespace shmemctl {

/// The rank that the launcher, or whoever started the job by hand, gave to this process; 0 if
/// nobody launched it as one of several; nothing if its environment does not tell.
std::optional<int> launched_rank(const Environment& environment);

/// Its rank among the processes of the job on this machine; nothing if that is not told.
std::optional<int> launched_local_rank(const Environment& environment);

} // namespace shmemctl
