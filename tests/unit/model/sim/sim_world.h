// Small clusters and traffic for the tests of the simulation.
#pragma once

#include "src/model/sim/request.h"
#include "tests/support/node_builder.h"

namespace shmemctl::test {

inline MappingRequest mapping_of(const Node& node, Policy policy = Policy::optimal) {
  MappingRequest request;
  request.policy = policy;
  request.gpus = assign_gpus(node, -1, {});
  return request;
}

/// Nodes of `pairs` GPUs and NICs of 400 Gb/s.
inline sim::Cluster small_cluster(int nodes, int pairs, sim::Fabric fabric = {},
                                  const std::vector<sim::NicChange>& changes = {}) {
  const Node node = testing::NodeBuilder::hgx(pairs).node;
  sim::ClusterRequest request;
  request.nodes = nodes;
  request.mapping = mapping_of(node);
  request.fabric = fabric;
  request.changes = changes;
  request.link_GBps = 400;
  return build_cluster(node, request);
}

inline sim::Request small_request(int nodes, int experts, int top_k, int tokens) {
  sim::Request request;
  request.nodes = nodes;
  request.experts = experts;
  request.top_k = top_k;
  request.tokens = tokens;
  request.hidden = 128;
  return request;
}

} // namespace shmemctl::test
