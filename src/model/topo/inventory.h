// The GPUs and RDMA NICs of a node, with the facts that are the same on all nodes of one type and
// by which such nodes are compared.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/model/topo/node.h"

namespace shmemctl {

/// A GPU or an RDMA NIC, without its serial number, UUID and GUID; `ports` still has LIDs and GIDs.
struct InventoryDevice {
  std::string subject; ///< "GPU 3 (0000:5d:00.0)", "mlx5_3"
  /// `name` is a NIC's, `pci_id` vendor and device ("10de:2330"), `model` and `vbios` a GPU's.
  Fact<std::string> name, pci, pci_id, model, firmware, vbios;
  PcieLink link;
  std::optional<int> nvlinks; ///< active links of a GPU, to GPUs and switches
  bool reports_links = false; ///< for a GPU: the source names a link, so that `nvlinks` was counted
  std::vector<NicPort> ports; ///< ports of a NIC
  Fact<int> numa;
  Fact<std::string> driver; ///< driver of a NIC
};

/// All GPUs, in PCI bus order.
std::vector<InventoryDevice> gpu_inventory(const Node& node);
/// Hardware RDMA NICs, in enumeration order: no Soft-RoCE, and no NIC without RDMA.
std::vector<InventoryDevice> nic_inventory(const Node& node);

/// The kernel's version as "kernel", and those of the drivers and of CUDA by name.
/// @param host as host_json() returns it
std::map<std::string, std::string> versions_of(const nlohmann::json& host);

} // namespace shmemctl
