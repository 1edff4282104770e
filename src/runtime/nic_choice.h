// Which NICs a PE hands to its transports.
#pragma once

#include <vector>

#include "src/topo/mapping/mapping.h"
#include "transports/transport.h"

namespace shmemctl {

/// Those of the mapping that carry the PE's traffic, best first, each once. A PE without a GPU is
/// nearer to none of them: the PEs of its node then share all that the options leave, evenly. Empty
/// if the mapping knows none.
/// @param local_pe   of this node
/// @param local_pes  how many there are on it
std::vector<HcaPort> ports_of_pe(const Node& node, const Mapping& mapping, std::size_t local_pe,
                                 std::size_t local_pes);

/// The mapping of a node's PEs as they use it: what those without a GPU share is theirs, too.
Mapping mapping_in_use(const Node& node, Mapping mapping, std::size_t local_pes);

} // namespace shmemctl
