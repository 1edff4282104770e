// The facts of a machine that should be the same on all hosts of its type.
#pragma once

#include "src/base/host_facts.h"
#include "src/base/sysroot.h"
#include "src/model/topo/node.h"

namespace shmemctl {

/// What the checks and the node model read of a machine: versions, limits, settings of kernel and
/// memory, GPUs by position, RDMA NICs and their ports by name, interfaces by name, installed
/// libraries. Reads files only; no library is opened and no device asked.
/// @param sysroot where `node` was read from
HostFacts read_host_facts(const Node& node, const Sysroot& sysroot);

} // namespace shmemctl
