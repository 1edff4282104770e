// The topology of a page: its groups and its drawing.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reports/report.h"

namespace shmemctl::html {

struct NodeDevice {
  std::string name; ///< "GPU0", "mlx5_0"
  bool is_gpu = false;
  const nlohmann::json* facts =
      nullptr; ///< its entry in `gpus` or `nics`; JSON null if it has none
};

/// Devices at a distance of PIX or PXB from each other, GPUs first; or those that are close to no
/// other (`loose`).
struct SwitchGroup {
  std::vector<std::size_t> gpus, nics; ///< indices of devices
  bool loose = false;
};

/// Devices of one NUMA node, as far as the distances show.
struct Domain {
  std::string label; ///< "NUMA 0"
  std::vector<SwitchGroup> groups;
};

struct NodeGroups {
  std::vector<NodeDevice> devices; ///< in the order of the matrix
  std::vector<Domain> domains;
};

/// Groups devices by the topology's distance matrix; empty if it has no device, or more than 512.
NodeGroups group_devices(const nlohmann::json& topology);

/// The entry at row i, column j of the distance matrix; "" if it is unknown.
std::string distance_word(const nlohmann::json& topology, std::size_t i, std::size_t j);

// A node as a picture: GPUs above, NICs below, boxes around those that share a switch and a NUMA
// node, and a line from each PE's GPU to the NICs it uses. Lengths are in units of the picture.

enum class BoxKind { domain, pcie_switch, gpu, nic, nvlink };
enum class DeviceState {
  usual,
  hot,
  idle,
  faulty ///< a finding reports an error
};

struct PictureBox {
  BoxKind kind = BoxKind::gpu;
  double x = 0, y = 0, width = 0, height = 0;
  std::string label, detail;
  std::vector<std::string> tip; ///< lines of the tooltip
  DeviceState state = DeviceState::usual;
};

enum class LineKind {
  near, ///< mapping: by a PCIe switch
  node, ///< mapping: within a NUMA node
  far,  ///< mapping: across sockets, or unknown
  nvlink
};

struct PictureLine {
  LineKind kind = LineKind::near;
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  std::string label;
};

struct TopologyPicture {
  double width = 0, height = 0;
  std::vector<PictureBox> boxes; ///< enclosing boxes come first
  std::vector<PictureLine> lines;
};

/// Empty if the topology's matrix has no devices, or more than can be drawn.
/// @param hot names of overloaded NICs
/// @param faulty names of NICs with an error, which has precedence over being hot
std::optional<TopologyPicture> topology_picture(const nlohmann::json& topology,
                                                const nlohmann::json& mapping,
                                                const std::set<std::string>& hot,
                                                const std::set<std::string>& faulty = {});

/// The host of a report's topology; else the only host of the report; "" if unknown.
std::string host_of(const Report& report);

/// Host and name of NICs that counters found hot or congested.
std::set<std::pair<std::string, std::string>> measured_hot_nics(const Report& report);
/// Names of NICs that are hot by this report's mapping, or in its simulation with that mapping.
std::set<std::string> nics_hot_by_mapping(const Report& report);

/// Host and name of the subjects of error findings, except those about load: NICs with flapping
/// links, ports that are down, ...; and of NICs with a counter that is an error by its threshold.
std::set<std::pair<std::string, std::string>> faulty_nics(const Report& report);

nlohmann::json picture_json(const TopologyPicture& picture);

} // namespace shmemctl::html
