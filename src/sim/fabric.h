// What stands between the NICs of a cluster: two layers of switches.
#pragma once

#include <string>

namespace shmemctl::sim {

enum class FabricKind {
  rail,    ///< NIC i of each node of a block has leaf switch i of that block
  fat_tree ///< all NICs of a block's nodes have the same leaf switch
};
const char* to_string(FabricKind kind); ///< "rail", "fat-tree"

/// Leaf switches have uplinks to a second layer, which is taken to carry whatever reaches it.
struct Fabric {
  FabricKind kind = FabricKind::rail;
  int leaf_nodes = 32;         ///< nodes that share leaf switches: a block
  double oversubscription = 1; ///< a leaf's links to NICs over its uplinks
};

} // namespace shmemctl::sim
