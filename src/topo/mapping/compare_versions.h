// Where NVSHMEM's releases disagree about one node.
#pragma once

#include <vector>

#include "src/topo/mapping/mapping.h"

namespace shmemctl {

/// Releases that give the same answer, and the answer.
struct VersionDifference {
  std::vector<NvshmemVersion> versions; ///< ascending
  std::vector<PeMapping> pes;
};

/// The releases that compare_versions() asks: the newest known of each generation, the newest
/// before each other change of the rules, and the requested one; those that have the transport.
std::vector<NvshmemVersion> compared_versions(const NvshmemSettings& settings);

/// The answer of each of them to the same request, equal ones (same NICs and ports in the same
/// order, as many of them used) together, in the order of their oldest release.
std::vector<VersionDifference> compare_versions(const Node& node, const MappingRequest& request);

} // namespace shmemctl
