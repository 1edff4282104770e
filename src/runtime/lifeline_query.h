// Asking any PE what it does, over a connection of its own.
#pragma once

#include <optional>
#include <vector>

#include "src/base/socket.h"
#include "src/runtime/lifeline_state.h"

namespace shmemctl::lifeline {

/// By PE: where its lifeline listens, best address first.
using AddressBook = std::vector<std::vector<SocketAddress>>;

/// What `pe` does, or nothing if it does not answer within the limit on any of its addresses.
/// Throws the job's failure if that becomes known. Thread safe.
/// @param about -1, or whose last phase is wanted too
std::optional<Status> ask(const State& state, const AddressBook& addresses, int pe, int about,
                          double limit_s);

/// Lifeline::presence().
Presence presence_of(const State& state, const AddressBook& addresses, int pe, double limit_s);

} // namespace shmemctl::lifeline
