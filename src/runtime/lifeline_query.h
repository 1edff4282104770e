// Asking any PE what it does, over a connection of its own.
#pragma once

#include <optional>
#include <vector>

#include "src/base/socket.h"
#include "src/runtime/lifeline_state.h"

namespace shmemctl::lifeline {

/// By PE: where its lifeline listens, best address first.
using AddressBook = std::vector<std::vector<SocketAddress>>;

/// Knocks at a lifeline's listener and takes its challenge. Throws Error: as Socket; `unavailable`
/// if the answer is none.
Handshake knock_at(Socket& socket, const Deadline& deadline, const WaitCheck& check);

/// The next message on a connection; nothing if what comes is none.
std::optional<Message> receive_message(Socket& socket, const Deadline& deadline,
                                       const WaitCheck& check);

/// What `pe` does, or nothing if it does not answer within the limit on any of its addresses.
/// Throws the job's failure if that becomes known. Thread safe.
/// @param about -1, or whose last phase is wanted too
std::optional<Status> ask(const State& state, const AddressBook& addresses, int pe, int about,
                          double limit_s);

/// Lifeline::presence().
Presence presence_of(const State& state, const AddressBook& addresses, int pe, double limit_s);

} // namespace shmemctl::lifeline
