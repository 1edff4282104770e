// Whether two nodes of a report are of one kind.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace shmemctl {

/// A text that nodes of the same kind share: same devices at the same places, same distances, same
/// mapping. Not compared: host name, UUIDs, GUIDs, GIDs, LIDs, current PCIe speed, memory size,
/// notes, remarks, the origins of facts, and why facts are unknown.
/// @param topology topology_json() of the node
/// @param mapping mapping_json() of the node, its PEs numbered from 0
std::string node_kind(const nlohmann::json& topology, const nlohmann::json& mapping);

} // namespace shmemctl
