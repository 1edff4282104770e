// Writes a node model as hwloc XML, as NCCL XML, or into a report; the readers read all of them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "src/base/sysroot.h"
#include "src/model/topo/node.h"

namespace shmemctl {

/// hwloc 2 XML that `lstopo -i` reads; NCCL XML that NCCL_TOPO_FILE takes. What these formats
/// cannot represent is in elements that their readers ignore, so that reading the dump back gives
/// the same model (same_model()).
std::string write_hwloc_xml(const Node& node);
std::string write_nccl_xml(const Node& node);

/// The report's `topology` object: gpus, nics, distances and so on, and the whole model beside
/// them.
nlohmann::json topology_json(const Node& node);
/// The model back from `topology`. Without `model`, the other keys are sufficient; throws Error
/// (usage) naming the key that is missing or of the wrong type.
Node node_from_json(const nlohmann::json& topology, const std::string& subject);

// The report's `hosts[]` entry of a node.

/// As documented: name, kernel, versions, CPUs, GPUs, HCAs and interfaces. `sysroot` is where the
/// node was read from; null for a recorded file, whose kernel and drivers are unknown.
nlohmann::json host_json(const Node& node, const Sysroot* sysroot);

} // namespace shmemctl
