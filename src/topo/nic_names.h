// What the name of an RDMA device tells about it.
#pragma once

#include <string>

#include "src/topo/node.h"

namespace shmemctl {

/// The link layer that a device's name states, for sources that give names only: rdma-core's
/// persistent names (ib*, roce*, iw*: rdma_rename(8)), names that sites give by kind (mlx5_ib0,
/// mlx5_eth0, Azure's mlx5_an0), and mlx5_bond_0 (only Ethernet ports bond). The kernel's own names
/// (mlx5_0) tell nothing: unknown, with that reason. The origin says that it is derived.
Fact<LinkLayer> link_layer_from_name(const std::string& name);

} // namespace shmemctl
