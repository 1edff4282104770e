// The keys of `topology` that the contract names: gpus, nics, distances.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "src/topo/json/place.h"
#include "src/topo/node.h"

namespace shmemctl::model_json {

/// The contract's keys of a node, other_nics and notes beside them.
nlohmann::json contract_json(const Node& node);

/// A node from the contract's keys alone: PCI functions without a tree above them, and the report's
/// distances as a recorded matrix. Throws Error (usage) with the pointer of what is missing or of
/// the wrong type.
Node node_from_contract(const nlohmann::json& topology, const Place& place,
                        const std::string& subject);

} // namespace shmemctl::model_json
