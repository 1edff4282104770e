// CPU binding of `run`: each PE gets cores of its own, near its GPU.
#pragma once

#include <string>
#include <vector>

#include "src/base/options.h"
#include "src/base/sysroot.h"
#include "src/model/topo/cpus.h"

namespace shmemctl {

/// What PEs are bound to.
struct CoreShares {
  std::vector<CpuSet> cpus; ///< by PE; empty: they are not bound
  std::string
      reason; ///< why they are not bound, as a clause; otherwise the criterion of the binding
};

/// Divides the allowed cores: each PE gets at least one, PEs of a NUMA node share its cores evenly,
/// and no two PEs share a core. A PE's remaining cores are for the threads that it starts. Not
/// bound if there are more PEs than cores.
/// @param numa_of_pe where each PE's GPU is; -1: anywhere, distributed over the nodes in order
CoreShares share_cores(const CpuLayout& layout, const CpuSet& allowed,
                       const std::vector<int>& numa_of_pe);

/// The NUMA node of each NVIDIA GPU, by PCI address; -1 where the kernel does not know.
std::vector<int> gpu_numa_nodes(const Sysroot& sysroot);

/// The CPU sets for a job of this process. Not bound: a job of one PE, which has all cores anyway;
/// a process whose affinity is already restricted within its machine or container; and if
/// PROXY_CPUS names CPUs.
CoreShares choose_core_shares(const Sysroot& sysroot, const Environment& environment, int n_pes);

/// For --verbose: a line for each PE, or the reason why they are not bound.
std::string to_text(const CoreShares& shares, const CpuLayout& layout);

} // namespace shmemctl
