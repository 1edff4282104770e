// Changes of a cluster that somebody wants to try: a NIC that is dead, a slower link, an expert
// elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/topo/node.h"

namespace shmemctl::sim {

/// What becomes of a NIC, or of one of its ports.
struct NicChange {
  std::optional<int> node; ///< nothing: of every node
  std::string device;
  std::optional<int> port; ///< nothing: all of them
  double rate_share = 0;   ///< of its rate that is left; 0: dead, and the mapping does without it

  bool concerns(int of_node) const { return !node || *node == of_node; }
};
/// An expert that another rank holds, besides its own.
struct ExpertMove {
  std::int32_t expert = 0, rank = 0;
};
struct WhatIf {
  std::vector<NicChange> nics;
  std::vector<ExpertMove> moves;
  bool any() const { return !nics.empty() || !moves.empty(); }
};

/// "mlx5_3", "17/mlx5_3", "17/mlx5_3:1": a dead one. Throws Error (usage).
NicChange parse_dead_nic(const std::string& text);
/// "17/mlx5_3=0.5": half of its rate is left. Throws Error (usage).
NicChange parse_slow_nic(const std::string& text);
/// "5:12": expert 5 to rank 12. Throws Error (usage).
ExpertMove parse_expert_move(const std::string& text);

/// Throws Error (usage), with the nearest name or number, if the node has no such NIC or port, or
/// the cluster no such node.
void require_known(const NicChange& change, const Node& node, int nodes);
/// In the words in which it was asked for.
std::string to_string(const NicChange& change);

} // namespace shmemctl::sim
