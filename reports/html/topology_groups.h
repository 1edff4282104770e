// Which devices of a node stand together: below one PCIe switch, in one NUMA node.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shmemctl::html {

struct NodeDevice {
  std::string name; ///< "GPU0", "mlx5_0"
  bool is_gpu = false;
  const nlohmann::json* facts =
      nullptr; ///< its entry in `gpus` or `nics`; JSON null if it has none
};

/// Devices at PIX or PXB of each other, GPUs first; or those that are near no other (`loose`).
struct SwitchGroup {
  std::vector<std::size_t> gpus, nics; ///< indices of devices
  bool loose = false;
};

/// Devices of one NUMA node, as far as distances tell.
struct Domain {
  std::string label; ///< "NUMA 0"
  std::vector<SwitchGroup> groups;
};

struct NodeGroups {
  std::vector<NodeDevice> devices; ///< in the order of the matrix
  std::vector<Domain> domains;
};

/// By the words of the distance matrix, which every topology has; empty if it has no device.
NodeGroups group_devices(const nlohmann::json& topology);

/// The word at row i, column j of the distance matrix; "" if it is unknown.
std::string distance_word(const nlohmann::json& topology, std::size_t i, std::size_t j);

} // namespace shmemctl::html
