// The facts of a node as NVSHMEM's inputs, which map_nvshmem() asks with.
#pragma once

#include "src/topo/mapping/mapping.h"

namespace shmemctl {

/// The devices as the verbs library would enumerate them, with the Node::nics index of each.
struct Enumeration {
  std::vector<HcaFacts> devices;
  std::vector<int> nics;
};
/// NICs without RDMA are left out. A NIC whose ports the source does not tell has port 1, active; a
/// port state or link layer that is unknown is one that NVSHMEM accepts.
Enumeration enumerate_hcas(const Node& node);

} // namespace shmemctl
