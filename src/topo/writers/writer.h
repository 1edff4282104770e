// Writes a node model in the formats that the readers read.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "src/topo/node.h"

namespace shmemctl {

/// hwloc 2 XML that `lstopo -i` reads; NCCL XML that NCCL_TOPO_FILE takes. What these formats
/// cannot represent is in info elements that they ignore, so that reading the dump back gives the
/// same model (same_model()).
std::string write_hwloc_xml(const Node& node);
std::string write_nccl_xml(const Node& node);

/// The report's `topology` object: gpus, nics, distances as documented, and the whole model beside
/// them.
nlohmann::json topology_json(const Node& node);
/// The model back from `topology`. The documented keys alone are sufficient; throws Error (usage)
/// naming the key that is missing or of the wrong type.
Node node_from_json(const nlohmann::json& topology, const std::string& subject);

} // namespace shmemctl
