// What NCCL's XML has no words for, as <shmemctl key="..." value="..."/> elements that NCCL skips.
#pragma once

#include <string>

#include "src/topo/node.h"
#include "src/topo/readers/xml.h"

namespace shmemctl::nccl {

/// No attribute that we write is longer: NCCL reads values into 256 bytes.
inline constexpr std::size_t max_value_bytes = 240;

/// The elements, one per line, that turn `plain` (what reading NCCL's own elements gives) into
/// `node`: the fields that differ (src/topo/node_fields.h). A long text is split over elements of
/// one key.
std::string extras(const Node& plain, const Node& node);

/// `plain` with the extras below <system> applied. Throws Error (usage) with line and column.
Node with_extras(const Node& plain, const XmlElement& system, const std::string& subject);

} // namespace shmemctl::nccl
