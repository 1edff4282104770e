// The model as info elements, for what hwloc has no words for.
#pragma once

#include <string>
#include <vector>

#include "src/topo/node.h"

namespace shmemctl {

struct HwlocInfo {
  std::string name;
  std::string value;
};
using HwlocInfos = std::vector<HwlocInfo>;

/// Records of the node as a whole: sizes, packages, NUMA nodes, host bridges, the recorded matrix.
HwlocInfos node_infos(const Node& node);
/// Records of one PCI entry, one GPU with its links, one NIC with its ports and GIDs.
HwlocInfo pci_info(const Node& node, int entry);
HwlocInfos gpu_infos(const Gpu& gpu, int position);
HwlocInfos nic_infos(const Nic& nic, int position);

} // namespace shmemctl
