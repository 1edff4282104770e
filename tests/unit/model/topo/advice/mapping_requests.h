// Requests and mappings shared by the tests of findings.
#pragma once

#include <string>
#include <vector>

#include "src/model/topo/advice/advice.h"
#include "tests/support/findings.h"
#include "tests/support/node_builder.h"

namespace shmemctl {

using shmemctl::testing::contains;
using shmemctl::testing::expect_well_formed;
using shmemctl::testing::find;
using shmemctl::testing::ids;
using shmemctl::testing::NodeBuilder;

inline MappingRequest request_for(const Node& node, World world = World::node) {
  MappingRequest request;
  request.world = world;
  request.gpus = assign_gpus(node, -1, {});
  return request;
}

inline Findings checked(const Node& node, const MappingRequest& request) {
  Findings findings = check_mapping(node, map_nics(node, request));
  expect_well_formed(findings);
  return findings;
}

inline MappingRequest with_list(const Node& node, const std::string& list) {
  MappingRequest request = request_for(node);
  request.nvshmem.hca_list = list;
  return request;
}

inline MappingRequest with_pe_mapping(const Node& node, const std::string& list,
                                      bool enable = true) {
  MappingRequest request = request_for(node);
  request.nvshmem.hca_pe_mapping = list;
  request.nvshmem.enable_nic_pe_mapping = enable;
  return request;
}

/// A mapping in which each PE has that one NIC.
inline Mapping fake_mapping(const Node& node, const std::vector<int>& nics) {
  Mapping mapping;
  mapping.request = request_for(node);
  mapping.request.policy = Policy::nccl;
  for (std::size_t pe = 0; pe < nics.size(); ++pe) {
    PeMapping answer;
    answer.pe = static_cast<int>(pe);
    answer.gpu = mapping.request.gpus[pe];
    answer.nics = {
        {nics[pe], 1, distance(node, answer.gpu, static_cast<int>(node.gpus.size()) + nics[pe])}};
    answer.used = 1;
    mapping.pes.push_back(answer);
  }
  fill_loads(node, mapping);
  return mapping;
}

inline const std::string all_eight =
    "mlx5_0:1:1,mlx5_1:1:1,mlx5_2:1:1,mlx5_3:1:1,mlx5_4:1:1,mlx5_5:1:1,"
    "mlx5_6:1:1,mlx5_7:1:1";

} // namespace shmemctl
