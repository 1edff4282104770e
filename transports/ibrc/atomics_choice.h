// Whether HCAs or CPUs execute atomics: decided from the data of all PEs, with the same result on
// all.
#pragma once

#include <string>
#include <vector>

#include "src/base/error.h"
#include "transports/ibrc/wire.h"

namespace shmemctl::ibrc {

/// How two PEs could execute atomics, before it is known which NICs the job will use.
enum class AtomicsMethod { device, message, none };
AtomicsMethod atomics_method(const AtomicsCapabilities& local, const AtomicsCapabilities& remote);

/// A PE of the job, with its name for messages: "PE 3 on node2".
struct NamedCapabilities {
  AtomicsCapabilities capabilities;
  std::string name;
};
/// Whether the whole job uses atomics by message: an HCA's are not atomic with a CPU's, so all must
/// be executed in the same way. Throws Error (usage) if IB_ATOMICS of PEs contradict each other,
/// Error (unavailable) if messages are requested and a PE cannot receive any.
/// @param where this PE, for messages
bool atomics_by_message(const std::vector<NamedCapabilities>& all, const Where& where);

} // namespace shmemctl::ibrc
