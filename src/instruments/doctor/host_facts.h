// The facts of a machine that should be the same on all hosts of its type.
#pragma once

#include "src/base/host_facts.h"
#include "src/base/sysroot.h"
#include "src/model/topo/node.h"

namespace shmemctl {

/// Collects what the checks and the node model read from a machine: versions, limits, kernel and
/// memory settings, GPUs by position, RDMA NICs and their ports by name, interfaces by name,
/// installed libraries. Reads files only: opens no library and queries no device.
/// @param sysroot the machine that `node` was read from
HostFacts read_host_facts(const Node& node, const Sysroot& sysroot);

} // namespace shmemctl
