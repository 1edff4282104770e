// NCCL's own elements, without what shmemctl adds to them.
#pragma once

#include <string>

#include "src/topo/node.h"
#include "src/topo/readers/xml.h"

namespace shmemctl::nccl {

/// The node that the <cpu>, <pci>, <gpu>, <nic> and <net> elements below <system> describe,
/// normalized. Throws Error (usage) with line and column.
Node node_of_system(const XmlElement& system, const std::string& subject);

} // namespace shmemctl::nccl
