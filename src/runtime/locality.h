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

/// The ports that carry the PE's traffic according to the mapping, best first, each once. A PE
/// without a GPU is not nearer to any port, so the PEs of the node evenly share all ports that the
/// options allow. Empty if the mapping has none.
/// @param local_pe   the PE's rank on its node
/// @param local_pes  number of PEs on the node
std::vector<HcaPort> ports_of_pe(const Node& node, const Mapping& mapping, std::size_t local_pe,
                                 std::size_t local_pes);

/// The mapping as the node's PEs use it: for PEs without a GPU it contains the ports of
/// ports_of_pe().
Mapping mapping_in_use(const Node& node, Mapping mapping, std::size_t local_pes);

struct NumaChoice {
  int node = -1;      ///< the kernel's number; -1: none
  std::string reason; ///< why this node, or why none
};

/// The NUMA node of the CPUs that the PE is bound to, if all of them are in one node; else the node
/// of its GPU; else none. Also none if the machine has only one node with memory.
/// @param bound_to CPUs that the PE may run on; empty if unknown
/// @param gpu      index in Node::gpus; -1 if the PE has none
NumaChoice choose_numa_node(const Node& node, const CpuSet& bound_to, int gpu);

/// The CPUs that this thread may run on, as the kernel reports them; empty if unknown.
CpuSet allowed_cpus(const Sysroot& sysroot);

} // namespace shmemctl
