// What a node of one type must have: recorded on a good node, compared with every other one.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/model/topo/node.h"

namespace shmemctl {

/// A port that must be active, with what must hold for it. What is empty is not compared.
struct ExpectedPort {
  int number = 1;
  std::optional<std::string> link_layer; ///< "InfiniBand", "Ethernet"
  std::optional<double> rate_Gbps;
};

/// A GPU or an RDMA NIC. What is empty is not compared. Texts are patterns of fnmatch(3):
/// `28.39.*`.
struct ExpectedDevice {
  std::optional<std::string> name;   ///< name of a NIC: "mlx5_0"
  std::optional<std::string> pci;    ///< "0000:18:00.0"
  int count = 1;                     ///< how many of the kind; only without `name` and `pci`
  std::optional<std::string> pci_id; ///< vendor and device: "10de:2330"
  std::optional<std::string> model;  ///< model of a GPU
  std::optional<std::string> firmware;
  std::optional<std::string> vbios;      ///< VBIOS version of a GPU
  std::optional<int> pcie_width;         ///< lanes
  std::optional<double> pcie_speed_GTps; ///< for NICs only: an idle GPU lowers its speed
  std::optional<int> nvlinks;            ///< active links of a GPU
  std::vector<ExpectedPort> ports;

  bool is_named() const { return name || pci; }
};

struct Expectation {
  std::optional<std::vector<ExpectedDevice>> gpus, nics; ///< empty: any devices are right
  std::optional<int> nvswitches;
  /// "kernel", "nvidia", "cuda", "mlx5_core", ... -> pattern: the versions of host_json().
  std::map<std::string, std::string> versions;
};

/// The content of a file for --expect: what this node has, without what differs from node to node
/// of one type (host name, serial numbers, addresses of ports), and without what is unknown here.
/// @param host of host_json()
std::string record_expectation(const Node& node, const nlohmann::json& host);

/// Throws Error (usage) that names the place in the file: not JSON, an unknown key (with the
/// nearest one), a value of the wrong kind or out of range, a device without anything to find it
/// by.
/// @param file the file's name, for the message
Expectation parse_expectation(const std::string& text, const std::string& file);

/// What the node lacks, and where it differs:
/// - expected-missing (error): a device that is not there
/// - expected-differs (error): a device, a number of NVSwitches or a version that is another one,
/// or
///   cannot be read here; all that differs of one device in one finding
/// - expected-extra (warning): a GPU or an RDMA NIC that is not named where others are
/// A device with a name or PCI address is found by that; others are counted, those that fit first.
Findings compare_with_expectation(const Expectation& expectation, const Node& node,
                                  const nlohmann::json& host);

} // namespace shmemctl
