// Finding the root cause of a timeout: queries to PEs, over separate connections, and the chain of
// waits.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "src/base/socket.h"
#include "src/runtime/failure_detector_state.h"

namespace shmemctl::failure_detector {

/// By PE: the addresses on which its failure detector listens, best first.
using AddressBook = std::vector<std::vector<SocketAddress>>;

/// Sends a ConnectionRequest and receives the Challenge. Throws Error: as Socket; `unavailable` if
/// the response is malformed.
Handshake request_challenge(Socket& socket, const Deadline& deadline, const WaitCheck& check);

/// The next message on a connection; nothing if it is malformed.
std::optional<Message> receive_message(Socket& socket, const Deadline& deadline,
                                       const WaitCheck& check);

/// What `pe` does, or nothing if it does not answer within the limit on any of its addresses.
/// Throws the job's failure if that becomes known. Thread safe.
/// @param about -1, or the PE whose last phase is asked for, too
std::optional<Status> ask(const State& state, const AddressBook& addresses, int pe, int about,
                          double limit_s);

/// FailureDetector::presence().
Presence presence_of(const State& state, const AddressBook& addresses, int pe, double limit_s);

/// As ask(): the PE to ask, the PE whose last phase is asked for, too (or -1), the limit in
/// seconds. Thread safe.
using Asker = std::function<std::optional<Status>(int pe, int about, double limit_s)>;

/// Follows "waits for" from `peer`, at most 16 hops of about 300 ms (a PE without progress gets 700
/// ms more before it is named), to the PE that does not respond, that waits for nobody, or that
/// closes a cycle. Throws what `ask` throws.
Failure follow_chain(const State& state, const Asker& ask, int peer);

/// Asks all PEs, 32 at once, until 256 do not answer. Names those that do not answer; otherwise
/// those in the earliest phase; otherwise the end of the chain of waits.
Failure query_all_pes(const State& state, const Asker& ask);

} // namespace shmemctl::failure_detector
