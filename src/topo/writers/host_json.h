// The report's `hosts[]` entry of a node.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "src/base/sysroot.h"
#include "src/topo/node.h"

namespace shmemctl {

/// Name, kernel, CPUs, GPUs and HCAs as documented. `sysroot` is where the node was read from; null
/// for a recorded file, whose kernel and drivers are unknown.
nlohmann::json host_json(const Node& node, const Sysroot* sysroot);

} // namespace shmemctl
