// The report's `mapping` object.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "src/topo/advice/advice.h"
#include "src/topo/mapping/mapping.h"

namespace shmemctl {

/// Keys of the contract (policy, version, world, pes, nics), and beside them generation,
/// load_factor, table, exclusions, list, advice. What is unknown or does not apply is null, with
/// the reason in `<key>_reason`.
nlohmann::json mapping_json(const Node& node, const Mapping& mapping,
                            const std::vector<Advice>& advice);

/// The mapping of one node with the numbers that its PEs have in their job; as it is if the job has
/// not as many PEs there. @param pes of that node, ascending
Mapping numbered_by_job(Mapping mapping, const std::vector<int>& pes);

/// `compare_versions` of the report's mapping: releases that choose alike, with their choice.
nlohmann::json compare_versions_json(const Node& node, const MappingRequest& request);

} // namespace shmemctl
