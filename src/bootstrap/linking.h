// How a PE connects to its neighbours, once it knows where they are.
#pragma once

#include <string>
#include <vector>

#include "src/bootstrap/dialer.h"
#include "src/bootstrap/reception.h"
#include "src/bootstrap/uid.h"

namespace shmemctl {

/// Connections by level: to the PE at +2^level, and from the one at -2^level.
struct NeighbourSockets {
  std::vector<Socket> forth, back;
};

/// Where this PE listens for its neighbours: at the addresses from which it reaches the rendezvous
/// and at other usable ones, four at most. Throws Error.
std::vector<Listener> listen_for_neighbours(const UniqueId& id, const InterfaceFilter& filter);

struct LinkingRequest {
  int rank = 0, size = 1;
  Secret secret{};
  const Neighbours* neighbours = nullptr;
  /// The rendezvous tells on it if another PE fails; lost before the end, so is the job.
  Socket* rendezvous = nullptr;
  std::string who = {}; ///< host and process of this PE, for messages
};
/// Connects forth and lets those behind in, all at the same time, and returns once the rendezvous
/// reports that all PEs are connected; until then a neighbour that has lost its connection may
/// connect again. Throws Error; PEs that are connected by then are sent the reason, and so is the
/// rendezvous.
NeighbourSockets link_neighbours(const LinkingRequest& request, std::vector<Listener> listeners,
                                 const Deadline& deadline);

/// Waits for the next frame of the rendezvous. Throws Error; a FailureReport is a frame as others.
FrameReader await_from_rendezvous(Socket& rendezvous, const Deadline& deadline);
/// What this PE tells others about an error of its own.
FailureReport report_of(const Error& error, int rank);

/// The Error that a report says: "cannot <attempted> <subject>: <text>".
Error error_of(const FailureReport& report, const std::string& subject,
               const std::string& attempted);

} // namespace shmemctl
