// CPU binding of `run`: each PE gets its own cores, if possible near its GPU.
#pragma once

#include <string>
#include <vector>

#include "src/base/options.h"
#include "src/base/sysroot.h"
#include "src/model/topo/cpus.h"

namespace shmemctl {

/// The CPUs that PEs are bound to.
struct CoreShares {
  std::vector<CpuSet> cpus;          ///< by PE; empty: PEs are not bound
  std::string reason;                ///< why PEs are not bound, as a clause; "" if they are
  std::vector<std::string> criteria; ///< by PE: why it got these cores
};

/// Divides the allowed cores: each PE gets at least one, PEs of a NUMA node share its cores evenly,
/// and no two PEs share a core. A PE's additional cores are for the threads that it starts. PEs are
/// not bound if there are more PEs than cores.
/// @param numa_of_pe NUMA node of each PE's GPU; -1, or a node without a free core: any node; such
/// PEs are distributed over the nodes in order
CoreShares share_cores(const CpuLayout& layout, const CpuSet& allowed,
                       const std::vector<int>& numa_of_pe);

/// The NUMA node of each NVIDIA GPU, in the order of PCI addresses; -1 if the kernel does not know
/// it.
std::vector<int> gpu_numa_nodes(const Sysroot& sysroot);

/// The CPU sets for a job that this process starts. PEs are not bound if there is only one, which
/// has all cores anyway; if there are more PEs than cores; if this process's affinity is unknown or
/// restricted within its machine or container; or if SHMEMCTL_ or NVSHMEM_PROXY_CPUS is set.
CoreShares choose_core_shares(const Sysroot& sysroot, const Environment& environment, int n_pes);

/// For --verbose: a line for each PE, or the reason why PEs are not bound.
std::string to_text(const CoreShares& shares, const CpuLayout& layout);

} // namespace shmemctl
