// Asking any PE what it does, over a connection of its own.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "src/base/socket.h"
#include "src/runtime/failure_detector_state.h"

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

// Whom a job that does not get on is waiting for.

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
