// The NUMA node that a PE's heap should lie on.
#pragma once

#include <string>

#include "src/base/sysroot.h"
#include "src/topo/cpu_set.h"
#include "src/topo/node.h"

namespace shmemctl {

struct NumaChoice {
  int node = -1;      ///< the kernel's number; -1 is none
  std::string reason; ///< why this one, or none
};

/// The node of the CPUs that the PE is bound to, if these lie in one; else that of its GPU; else
/// none. Where there is one node only, there is nothing to choose.
/// @param bound_to CPUs that the PE may run on; empty if unknown
/// @param gpu      index in Node::gpus; -1 if the PE has none
NumaChoice choose_numa_node(const Node& node, const CpuSet& bound_to, int gpu);

/// The CPUs that this thread may run on, by the kernel; empty if it does not tell.
CpuSet allowed_cpus(const Sysroot& sysroot);

} // namespace shmemctl
