// A cluster as the model sees it: nodes of one topology, which NIC ports each rank sends and
// receives by, and how fast each is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/sim/fabric.h"
#include "src/sim/what_if.h"
#include "src/topo/mapping/mapping.h"
#include "src/topo/node.h"

namespace shmemctl::sim {

/// A NIC port; its place in Cluster::ports is its rail.
struct Port {
  int nic = 0; ///< index in Node::nics
  int number = 1;
  std::string device;
  double rate_GBps = 0;   ///< of each direction, 10^9 bytes per second; 0: unknown, and unused
  bool on_fabric = false; ///< of the compute fabric: the even share counts these
};

/// Nodes that are alike.
struct NodeKind {
  std::vector<double> rate_GBps;             ///< by port
  std::vector<std::vector<int>> ports_of_pe; ///< by local PE; each for an equal share of its bytes

  bool operator==(const NodeKind& other) const = default;
};

struct Cluster {
  int nodes = 1;
  int node_pes = 1;
  std::vector<Port> ports;
  std::vector<double>
      link_GBps;               ///< by local PE: to the GPUs of its node, each direction; 0: unknown
  std::vector<NodeKind> kinds; ///< kinds[0]: unchanged
  std::vector<int> kind_of_node;
  Fabric fabric;
  Mapping mapping; ///< of an unchanged node

  int ranks() const { return nodes * node_pes; }
  const NodeKind& kind(int node) const {
    return kinds[static_cast<std::size_t>(kind_of_node[static_cast<std::size_t>(node)])];
  }
  int fabric_ports() const;
  /// Whether each PE has the same NICs at the same rates there, whoever chose them. Of two clusters
  /// of the same nodes and fabric.
  bool same_nics(const Cluster& other) const {
    return kinds == other.kinds && kind_of_node == other.kind_of_node;
  }
};

struct ClusterRequest {
  int nodes = 1;
  MappingRequest mapping;
  Fabric fabric;
  std::optional<double> nic_Gbps;  ///< instead of what the topology says of every port
  std::optional<double> link_GBps; ///< the same for a GPU's links to the others of its node
  std::vector<NicChange> changes;
};

/// Throws Error (usage): no NICs, a PE without one, a rate that nobody tells, a NIC that is not
/// there, numbers that make no fabric.
Cluster build_cluster(const Node& node, const ClusterRequest& request);

/// "mlx5_0/1".
std::string to_string(const Port& port);

} // namespace shmemctl::sim
