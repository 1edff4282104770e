// Connects a PE to its neighbours (rank ± 2^k), once their addresses are known.
#pragma once

#include <string>
#include <vector>

#include "src/runtime/bootstrap/acceptor.h"
#include "src/runtime/bootstrap/dialer.h"
#include "src/runtime/bootstrap/uid_bootstrap.h"

namespace shmemctl {

/// Connections by level: to the PE at +2^level, and from the PE at -2^level.
struct NeighbourSockets {
  std::vector<Socket> forward, backward;
};

/// Listens for the neighbours of this PE: at a Unix name if the rendezvous has one; else at up to
/// four addresses, first those from which it reaches the rendezvous. Throws Error.
std::vector<Listener> listen_for_neighbours(const UniqueId& id, const InterfaceFilter& filter);

struct ConnectRequest {
  int rank = 0, size = 1;
  Secret secret{};
  const Neighbours* neighbours = nullptr;
  /// The connection on which the rendezvous reports that another PE has failed. If it is lost
  /// before all PEs are connected, this PE fails.
  Socket* rendezvous = nullptr;
  std::string who = {}; ///< host and process of this PE, for messages
};
/// Connects to the neighbours at +2^k and accepts connections of those at -2^k, all at the same
/// time, and returns once the rendezvous reports that all PEs are connected. Until then a neighbour
/// that has lost its connection may connect again. Throws Error, and sends the reason to the PEs
/// that are already connected and, unless it came from there, to the rendezvous.
NeighbourSockets connect_neighbours(const ConnectRequest& request, std::vector<Listener> listeners,
                                    const Deadline& deadline);

/// Waits for the next frame of the rendezvous. Throws Error, but not for a frame with a
/// FailureReport: that is returned like any other.
FrameReader await_from_rendezvous(Socket& rendezvous, const Deadline& deadline);
/// The report with which this PE sends an error to the others.
FailureReport report_of(const Error& error, int rank);

/// The Error for a report: "<subject>: cannot <attempted>: <text> (says PE <reporter>)".
Error error_of(const FailureReport& report, const std::string& subject,
               const std::string& attempted);

} // namespace shmemctl
