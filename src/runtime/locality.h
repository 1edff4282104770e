// The NICs and the NUMA node near a PE.
#pragma once

#include <string>
#include <vector>

#include "src/base/sysroot.h"
#include "src/model/topo/cpus.h"
#include "src/model/topo/mapping/mapping.h"
#include "src/model/topo/node.h"
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

struct NumaChoice {
  int node = -1;      ///< the kernel's number; -1: none
  std::string reason; ///< why this one, or none
};

/// The node of the CPUs that the PE is bound to, if these lie in one; else that of its GPU; else
/// none. Where there is one node only, there is nothing to choose.
/// @param bound_to CPUs that the PE may run on; empty if unknown
/// @param gpu      index in Node::gpus; -1 if the PE has none
NumaChoice choose_numa_node(const Node& node, const CpuSet& bound_to, int gpu);

/// The CPUs that this thread may run on, by the kernel; empty if unknown.
CpuSet allowed_cpus(const Sysroot& sysroot);

} // namespace shmemctl
