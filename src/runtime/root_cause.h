// Finds the root cause of a timeout: queries PEs over separate connections, and follows the chain
// of waits.
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

/// The status of `pe`, or nothing if it does not answer within the limit on any of its addresses.
/// Throws the job's failure if one becomes known meanwhile. Thread safe.
/// @param about -1, or a PE whose last phase is also queried
std::optional<Status> ask(const State& state, const AddressBook& addresses, int pe, int about,
                          double limit_s);

/// As FailureDetector::presence(), which calls it.
Presence presence_of(const State& state, const AddressBook& addresses, int pe, double limit_s);

/// As ask(): the PE to query, a PE whose last phase is also queried (or -1), and the limit in
/// seconds. Thread safe.
using Asker = std::function<std::optional<Status>(int pe, int about, double limit_s)>;

/// Follows the chain of waits from `peer` on to the PE that does not respond, waits for no other PE
/// or for its network, or closes a cycle. At most 16 hops of at most 300 ms each; a PE that does
/// not respond gets 700 ms more. Rethrows the exceptions of `ask`.
Failure follow_chain(const State& state, const Asker& ask, int peer);

/// Queries all PEs, 32 at once, until 256 have not answered. Names the PEs that do not answer; if
/// all answer, those that are in an earlier phase than others; otherwise a PE that waits for no PE
/// or for its network, or PEs that wait in a cycle.
Failure query_all_pes(const State& state, const Asker& ask);

} // namespace shmemctl::failure_detector
