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
/// operation on memory that it allocates: put, get, atomic addition if supported, put with signal.
/// @param nics ports for use_nics(); if empty, the transport chooses
/// @throw Error (unavailable) if the transport can be used but fails; Error (finding) if an
/// operation's result is wrong
Loopback run_loopback(Transport& transport, const std::vector<HcaPort>& nics, double timeout_s);

} // namespace shmemctl
