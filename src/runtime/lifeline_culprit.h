// Whom a job that does not get on is waiting for.
#pragma once

#include <functional>
#include <optional>

#include "src/runtime/lifeline_state.h"

namespace shmemctl::lifeline {

/// As ask(): the PE, whose phase is wanted too (or -1), the limit in seconds. Thread safe.
using Asker = std::function<std::optional<Status>(int pe, int about, double limit_s)>;

/// Follows "waits for" from `peer`, at most 16 hops of about 300 ms (a PE that is late gets 700 ms
/// more before it is named), to the PE that does not answer, that waits for nobody, or that closes
/// a circle. Throws what `ask` throws.
Failure follow_chain(const State& state, const Asker& ask, int peer);

/// Asks all PEs, 32 at once, until 256 do not answer. Names those that do not answer; otherwise
/// those in the earliest phase; otherwise the end of the chain of waits.
Failure ask_everyone(const State& state, const Asker& ask);

} // namespace shmemctl::lifeline
