// From options to a mapping request.
#pragma once

#include "src/base/options.h"
#include "src/topo/mapping/mapping.h"

namespace shmemctl {

/// The option names that mapping_request() reads, for flags and for validation.
const std::vector<std::string>& mapping_option_names();

/// NVSHMEM's settings as the options give them. Lists that were not set stay unset: an empty list
/// is not the same as none. Throws Error (usage) for a version that is none.
NvshmemSettings nvshmem_settings(const Options& options);

/// Policy, world, PEs and GPUs. Throws Error (usage) for a GPU that the node does not have.
MappingRequest mapping_request(const Options& options, const Node& node);

} // namespace shmemctl
