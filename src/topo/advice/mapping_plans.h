// Settings that could give a node its best mapping.
#pragma once

#include <vector>

#include "src/topo/advice/env_change.h"

namespace shmemctl {

/// Changes of which devices NVSHMEM's transport takes at all: REMOTE_TRANSPORT, where its value is
/// none, HCA_PREFIX, and IBGDA where nothing else does. The first one is empty if the request needs
/// none of them to have a transport.
std::vector<EnvChange> transport_changes(const Node& node, const MappingRequest& request,
                                         const Mapping& optimal);

/// Whole sets of settings, the least change first: each of transport_changes() with no lists, with
/// storage and management NICs left out, with PEs pinned, and with a list per local rank. For NCCL
/// one list per local rank. None is confirmed: who prints one simulates it first.
std::vector<EnvChange> mapping_plans(const Node& node, const MappingRequest& request,
                                     const Mapping& optimal);

/// NICs that are not for GPUs' traffic: for storage, or of another network.
std::vector<int> other_nics(const Node& node);

/// NVSHMEM_HCA_LIST=^... that leaves out these NICs beside those that the user leaves out already.
/// Nothing where the user's list names what to use, or a PE mapping is set.
std::optional<EnvChange> leaving_out(const Node& node, const MappingRequest& request,
                                     const std::vector<int>& nics);

} // namespace shmemctl
