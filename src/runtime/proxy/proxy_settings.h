// What a runtime's options say of its proxy.
#pragma once

#include "src/base/options.h"
#include "src/runtime/identity.h"
#include "src/runtime/proxy/proxy_memory.h"

namespace shmemctl {

/// PROXY_CPUS; empty if it is not set. Throws Error (usage) for a text that is no list of CPUs.
CpuSet proxy_cpus(const Options& options);

/// PEs are dealt out over the rings in turn, both along the PEs of a node and along the PEs with
/// one local rank, as kernels that keep to their rail address them.
/// @param cpus_at_start what the threads get that PROXY_CPUS does not place; empty: the caller's
ProxyOptions proxy_options(const Options& options, const Placement& placement,
                           const CpuSet& cpus_at_start, double timeout_s);

} // namespace shmemctl
