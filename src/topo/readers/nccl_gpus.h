// NCCL's <gpu> elements: numbers and links.
#pragma once

#include <set>
#include <string>

#include "src/topo/node.h"
#include "src/topo/readers/xml.h"

namespace shmemctl::nccl {

/// Fills in what a <gpu> tells: the driver's number, the links, and the vendor if it is not known
/// yet. NVSwitches that links lead to are added to `nvswitches`. Throws Error (usage) with line and
/// column.
/// @return elements of links to a GPU, or to nobody knows what, that do not say to which: they
///         count in no distance
int read_gpu(const XmlElement& element, const std::string& subject, Gpu& gpu,
             std::set<PciAddress>& nvswitches);

} // namespace shmemctl::nccl
