// The node as write_hwloc_xml puts it into info elements of the machine, for what hwloc has no
// words.
#pragma once

#include <optional>
#include <string>

#include "src/topo/node.h"
#include "src/topo/readers/xml.h"

namespace shmemctl {

/// Before a field's key (src/topo/node_fields.h) in the name of its info element.
inline constexpr const char* hwloc_info_prefix = "shmemctl:";

/// The node from our infos alone; nothing if there are none. Throws Error (usage) with the position
/// of a field that is malformed or missing.
std::optional<Node> read_hwloc_dump(const XmlElement& topology, const std::string& subject);

} // namespace shmemctl
