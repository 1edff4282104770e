// The report's `mapping` object.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "src/model/topo/advice/advice.h"
#include "src/model/topo/mapping/mapping.h"

namespace shmemctl {

/// The documented keys (policy, version, world, pes, nics), and generation, load_factor, table,
/// exclusions, list, advice; version_source only if nobody asked for a release. What is unknown or
/// does not apply is null, with the reason in `<key>_reason`.
nlohmann::json mapping_json(const Node& node, const Mapping& mapping,
                            const std::vector<Advice>& advice);

/// The mapping of one node with its PEs numbered as in their job; unchanged if the job has another
/// number of PEs there. @param pes of that node, ascending
Mapping numbered_by_job(Mapping mapping, const std::vector<int>& pes);

/// `compare_versions` of the report's mapping: groups of releases with equal choices.
nlohmann::json compare_versions_json(const Node& node, const MappingRequest& request);

} // namespace shmemctl
