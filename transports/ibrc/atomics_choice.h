// Decides whether HCAs or CPUs execute atomics, from the data of all PEs, with the same result on
// all PEs.
#pragma once

#include <string>
#include <vector>

#include "src/base/error.h"
#include "transports/ibrc/wire.h"

namespace shmemctl::ibrc {

/// How two PEs can execute atomics on each other, as far as known before the NICs are chosen.
enum class AtomicsMethod { device, message, none };
AtomicsMethod atomics_method(const AtomicsCapabilities& local, const AtomicsCapabilities& remote);

/// A PE of the job, with its name for error messages: "PE 3 on node2".
struct NamedCapabilities {
  AtomicsCapabilities capabilities;
  std::string name;
};
/// Whether the whole job uses atomics by message. All PEs must use the same method, since atomics
/// of an HCA are not atomic with those of a CPU. Throws Error (usage) if PEs have contradicting
/// values of IB_ATOMICS, Error (unavailable) if messages are requested and a PE cannot receive any.
/// @param where this PE, for error messages
bool atomics_by_message(const std::vector<NamedCapabilities>& all, const Where& where);

} // namespace shmemctl::ibrc
