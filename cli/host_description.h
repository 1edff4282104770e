// The description of a host in the report of a job.
#pragma once

#include <vector>

#include "reports/job_hosts.h"
#include "src/base/sysroot.h"
#include "src/model/topo/mapping/mapping.h"
#include "src/model/topo/node.h"
#include "src/runtime/identity.h"

namespace shmemctl {

/// The hosts of a job in order of their first PE, which is the leader.
std::vector<HostPes> hosts_of_job(const Placement& placement);

/// Describes this host.
/// @param node,mapping the node as the job uses it; the mapping numbers PEs from 0
/// @param node_pes PEs of the host's first node
/// @param machine the node as `hosts` describes it, read from `sysroot`
HostDescription describe_host(const Node& node, const Mapping& mapping,
                              const std::vector<int>& node_pes, const HostPes& place,
                              const Node& machine, const Sysroot* sysroot);

} // namespace shmemctl
