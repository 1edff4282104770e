// A cluster of equal nodes, the switches between them, what-if changes, and findings about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/model/topo/mapping/mapping.h"
#include "src/model/topo/node.h"

namespace shmemctl::sim {

enum class FabricKind {
  rail,    ///< NIC i of each node of a block is on leaf switch i of that block
  fat_tree ///< all NICs of a block's nodes are on the same leaf switch
};
const char* to_string(FabricKind kind); ///< "rail", "fat-tree"

/// Leaf switches have uplinks to a second layer, which is assumed to be non-blocking.
struct Fabric {
  FabricKind kind = FabricKind::rail;
  int leaf_nodes = 32; ///< nodes that share leaf switches: a block
  double oversubscription =
      1; ///< oversubscription: a leaf's bandwidth to NICs over that of its uplinks
};

// What-if changes of a cluster: a dead NIC, a slower link, an expert on another rank.

/// The change of a NIC, or of one of its ports.
struct NicChange {
  std::optional<int> node; ///< empty: on every node
  std::string device;
  std::optional<int> port; ///< empty: all ports
  double rate_share = 0; ///< remaining share of its rate; 0: dead, and the mapping does not use it

  bool concerns(int of_node) const { return !node || *node == of_node; }
};
/// An expert that is moved to another rank, in addition to that rank's own experts.
struct ExpertMove {
  std::int32_t expert = 0, rank = 0;
};
struct WhatIf {
  std::vector<NicChange> nics;
  std::vector<ExpertMove> moves;
  bool any() const { return !nics.empty() || !moves.empty(); }
};

/// A dead NIC or port: "mlx5_3" on every node, "17/mlx5_3" on node 17, "17/mlx5_3:1" only its port
/// 1. Throws Error (usage).
NicChange parse_dead_nic(const std::string& text);
/// "17/mlx5_3=0.5": half of its rate is left. Throws Error (usage).
NicChange parse_slow_nic(const std::string& text);
/// "5:12": expert 5 to rank 12. Throws Error (usage).
ExpertMove parse_expert_move(const std::string& text);

/// Throws Error (usage), with the nearest name or number, if the node has no such NIC or port, or
/// the cluster no such node.
void require_known(const NicChange& change, const Node& node, int nodes);
/// As the user would write it on the command line.
std::string to_string(const NicChange& change);

// A cluster as the model sees it: nodes of one topology, the NIC ports by which each rank sends and
// receives, and the rate of each port.

/// A NIC port; its index in Cluster::ports is its rail.
struct Port {
  int nic = 0; ///< index in Node::nics
  int number = 1;
  std::string device;
  double rate_GBps = 0; ///< rate in each direction, 10^9 bytes per second; 0: unknown, and unused
  /// Whether it is a port of the compute fabric that the operator does not exclude (wanted_ports(),
  /// as for topo's loads). The even share is computed over these ports.
  bool on_fabric = false;
};

/// Nodes that are identical.
struct NodeKind {
  std::vector<double> rate_GBps; ///< by port
  std::vector<std::vector<int>>
      ports_of_pe; ///< by local PE: its ports, each with an equal share of its bytes

  bool operator==(const NodeKind& other) const = default;
};

struct Cluster {
  int nodes = 1; ///< up to max_nodes
  int node_pes = 1;
  std::vector<Port> ports;
  std::vector<double>
      link_GBps;               ///< by local PE: to the GPUs of its node, each direction; 0: unknown
  std::vector<NodeKind> kinds; ///< kinds[0]: unchanged
  std::vector<int> kind_of_node;
  Fabric fabric;
  Mapping mapping; ///< mapping of an unchanged node

  int ranks() const { return nodes * node_pes; }
  const NodeKind& kind(int node) const {
    return kinds[static_cast<std::size_t>(kind_of_node[static_cast<std::size_t>(node)])];
  }
  int fabric_ports() const;
  /// Whether each PE has the same NICs at the same rates in both clusters, whichever policy chose
  /// them. Both must have the same nodes and fabric.
  bool same_nics(const Cluster& other) const {
    return kinds == other.kinds && kind_of_node == other.kind_of_node;
  }
};

inline constexpr int max_nodes = 1 << 16;

struct ClusterRequest {
  int nodes = 1;
  MappingRequest mapping;
  Fabric fabric;
  std::optional<double> nic_Gbps;  ///< overrides the topology's rate of every port
  std::optional<double> link_GBps; ///< rate of a GPU's links within its node
  std::vector<NicChange> changes;
};

/// Throws Error (usage): a number of nodes out of range, no GPU, no usable NIC, a PE without a NIC,
/// an unknown rate, a NIC that does not exist, invalid fabric parameters.
Cluster build_cluster(const Node& node, const ClusterRequest& request);

/// "mlx5_0/1".
std::string to_string(const Port& port);

/// nic-off-fabric, as topo reports it for the node: a rank on another network cannot reach the
/// others as the model assumes.
Findings cluster_findings(const Node& node, const Cluster& cluster);

} // namespace shmemctl::sim
