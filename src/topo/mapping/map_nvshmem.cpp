#include "src/topo/mapping/nvshmem_mapping.h"

namespace shmemctl {

Mapping map_nvshmem(const Node& node, const MappingRequest& request) {
  Mapping mapping = simulate_nvshmem(node, request);
  fill_loads(node, mapping);
  return mapping;
}

} // namespace shmemctl
