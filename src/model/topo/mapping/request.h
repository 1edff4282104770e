// Mapping requests from options, and the comparison of NVSHMEM releases.
#pragma once

#include <vector>

#include "src/base/options.h"
#include "src/model/topo/mapping/mapping.h"

namespace shmemctl {

/// The option names that mapping_request() reads, for flags and for validation.
const std::vector<std::string>& mapping_option_names();

/// NVSHMEM's settings from the options. Lists that were not set stay unset: an empty list differs
/// from an unset one. Throws Error (usage) for an invalid version.
NvshmemSettings nvshmem_settings(const Options& options);

/// Policy, world, PEs and GPUs. REMOTE_TRANSPORT=auto is ibrc, as NVSHMEM's default, but libfabric
/// on a node whose RDMA devices ibrc cannot use (EFA). Throws Error (usage) for a GPU that the node
/// does not have.
MappingRequest mapping_request(const Options& options, const Node& node);

/// Releases with the same result, and the result.
struct VersionDifference {
  std::vector<NvshmemVersion> versions; ///< ascending
  std::vector<PeMapping> pes;
};

/// The releases that compare_versions() simulates: the newest known of each release family, the
/// newest before each other change of the rules, and the requested one; only those that have the
/// transport.
std::vector<NvshmemVersion> compared_versions(const NvshmemSettings& settings);

/// The result of each of these releases for the same request; equal results (same NICs and ports in
/// the same order, the same number of them used) are grouped, in the order of their oldest release.
std::vector<VersionDifference> compare_versions(const Node& node, const MappingRequest& request);

} // namespace shmemctl
