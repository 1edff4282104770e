// Loopback test of a transport: connects it to its own PE and moves data.
#pragma once

#include <string>
#include <vector>

#include "transports/transport.h"

namespace shmemctl {

struct Loopback {
  std::string unusable;   ///< why the transport cannot be used here, in one clause; empty if it can
  std::string connection; ///< "rxe0:1 -> rxe0:1, 2 QPs"; may be empty
};

/// Connects `transport` (just made, for a job of one PE) to this PE, and checks each kind of
/// operation on memory of its own: put, get, atomic addition if it has those, put with signal.
/// @param nics for use_nics(); none: the transport's own choice
/// @throw Error (unavailable) if it can be used and fails; (finding) for bytes that arrived wrong
Loopback run_loopback(Transport& transport, const std::vector<HcaPort>& nics, double timeout_s);

} // namespace shmemctl
