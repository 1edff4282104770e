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

// A node as a picture: GPUs above, NICs below, boxes around those that share a switch and a NUMA
// node, and a line from each PE's GPU to the NICs it uses. Lengths are in units of the picture.

enum class BoxKind { domain, pcie_switch, gpu, nic, nvlink };
enum class DeviceState {
  usual,
  hot,
  idle,
  faulty ///< a finding says that something is wrong with it
};

struct PictureBox {
  BoxKind kind = BoxKind::gpu;
  double x = 0, y = 0, width = 0, height = 0;
  std::string label, detail;
  std::vector<std::string> tip; ///< lines
  DeviceState state = DeviceState::usual;
};

enum class LineKind {
  near, ///< mapping: by a PCIe switch
  node, ///< mapping: within a NUMA node
  far,  ///< mapping: across sockets, or nobody knows
  nvlink
};

struct PictureLine {
  LineKind kind = LineKind::near;
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  std::string label;
};

struct TopologyPicture {
  double width = 0, height = 0;
  std::vector<PictureBox> boxes; ///< what encloses others comes before them
  std::vector<PictureLine> lines;
};

/// Nothing if the topology's matrix has no devices, or more than can be drawn.
/// @param hot names of NICs that carry too much
/// @param faulty names of NICs with an error, which is told rather than that they are hot
std::optional<TopologyPicture> topology_picture(const nlohmann::json& topology,
                                                const nlohmann::json& mapping,
                                                const std::set<std::string>& hot,
                                                const std::set<std::string>& faulty = {});

/// The host whose topology a report has; else the only one that it is of; "" if nobody knows.
std::string host_of(const Report& report);

/// Host and name of NICs that counters found hot or congested.
std::set<std::pair<std::string, std::string>> measured_hot_nics(const Report& report);
/// Names of NICs on which this report's mapping puts too much.
std::set<std::string> nics_hot_by_mapping(const Report& report);

/// Host and name of what findings of severity error are about, but for those that mean a load: NICs
/// among it, whose links flap, whose ports are down, ...
std::set<std::pair<std::string, std::string>> faulty_nics(const Report& report);

nlohmann::json picture_json(const TopologyPicture& picture);

} // namespace shmemctl::html
