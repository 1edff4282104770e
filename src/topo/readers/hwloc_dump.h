// The records that write_hwloc_xml puts into info elements.
#pragma once

#include <string>

#include "src/topo/node.h"
#include "src/topo/readers/xml.h"

namespace shmemctl {

/// Info elements of ours are called "shmemctl:<record>".
inline constexpr const char* hwloc_info_prefix = "shmemctl:";

/// True if `topology` is a dump of ours: it has a "shmemctl:dump" record.
bool is_hwloc_dump(const XmlElement& topology);

/// The node from the records of a dump alone, wherever in the document they are.
/// Throws Error (usage) with the position of a record that is malformed or missing.
Node read_hwloc_dump(const XmlElement& topology, const std::string& subject);

} // namespace shmemctl
