// What to simulate, as options and flags say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/model/moe/routing_file.h"
#include "src/model/sim/simulate.h"

namespace shmemctl::sim {

/// As on the command line.
struct Request {
  int nodes = 2;
  std::string fabric = "rail";
  int leaf_nodes = 32;
  double oversubscription = 1;
  std::optional<double> nic_Gbps, link_GBps; ///< instead of the topology's rates

  std::string pattern = "moe";
  std::string size = "1M"; ///< size for each pair of ranks; not used for moe
  int ep_ranks = 0;        ///< ranks that share the experts; 0: all
  std::optional<int> tokens, top_k, experts;
  int hidden = 7168;
  std::string routing = "uniform"; ///< a kind, or a file: with a / or . in its name
  int groups = 8, top_groups = 4, masked_percent = 0;
  bool uneven = false;
  std::string mode = "ht", dtype = "bf16", combine = "weighted", copies = "rank";
  bool flat = false;

  std::uint64_t seed = 1;
  int steps = 64;
  std::string sample = "auto";
  std::vector<std::string> kill_nics, slow_nics, move_experts;

  bool from_file() const { return routing.find_first_of("/.") != std::string::npos; }
};

/// These functions throw Error (usage) with the rule and, where there is one, a legal value.
WhatIf what_if_of(const Request& request);
ClusterRequest cluster_of(const Request& request, const MappingRequest& mapping);
/// @param recorded the file's content if `from_file()`
Traffic traffic_of(const Request& request, const Cluster& cluster,
                   const std::optional<moe::RecordedRouting>& recorded);
/// The traffic with these experts moved to other ranks.
Traffic moved(Traffic traffic, const std::vector<ExpertMove>& moves);
Effort effort_of(const Request& request, const Traffic& traffic);

/// "given"; then "optimal", unless that is the given policy; then "what-if", if changes are
/// requested.
struct Variants {
  std::vector<std::string> names;
  std::vector<Cluster> clusters;
  std::vector<Result> results; ///< point into `clusters`
};
/// Throws Error (usage).
Variants simulate_variants(const Node& node, const Request& request, const MappingRequest& mapping,
                           const Traffic& traffic);

} // namespace shmemctl::sim
