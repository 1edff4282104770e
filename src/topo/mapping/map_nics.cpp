#include "src/topo/mapping/mapping.h"

namespace shmemctl {

namespace {

Mapping map_by_policy(const Node& node, const MappingRequest& request) {
  switch (request.policy) {
  case Policy::nvshmem:
    return map_nvshmem(node, request);
  case Policy::nccl:
    return map_nccl(node, request);
  case Policy::optimal:
    return map_optimal(node, request);
  }
  return map_nvshmem(node, request);
}

/// A NIC that is not shown may be nearer than those that are.
Mapping with_hidden_nics(const Node& node, const MappingRequest& request) {
  Mapping mapping;
  mapping.request = request;
  mapping.undecided = std::to_string(node.hidden_nics) + " NICs of this node are not shown";
  for (std::size_t i = 0; i < request.gpus.size(); ++i) {
    PeMapping pe;
    pe.pe = static_cast<int>(i);
    pe.gpu = request.gpus[i];
    pe.reason = "unknown: " + mapping.undecided;
    mapping.pes.push_back(std::move(pe));
  }
  return mapping;
}

} // namespace

Mapping map_nics(const Node& node, const MappingRequest& request) {
  if (node.hidden_nics > 0)
    return with_hidden_nics(node, request);
  Mapping mapping = map_by_policy(node, request);
  fill_loads(node, mapping);
  return mapping;
}

} // namespace shmemctl
