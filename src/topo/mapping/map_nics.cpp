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

} // namespace

Mapping map_nics(const Node& node, const MappingRequest& request) {
  Mapping mapping = map_by_policy(node, request);
  fill_loads(node, mapping);
  return mapping;
}

} // namespace shmemctl
