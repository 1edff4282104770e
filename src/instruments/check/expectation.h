// What a node of one type must have: recorded on a good node, and compared with every other node.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/model/topo/node.h"

namespace shmemctl {

/// A port that must be active, and its expected properties. Empty members are not compared.
struct ExpectedPort {
  int number = 1;
  std::optional<std::string> link_layer; ///< "InfiniBand", "Ethernet"
  std::optional<double> rate_Gbps;
};

/// A GPU or an RDMA NIC. Empty members are not compared. Texts are patterns of fnmatch(3), such as
/// `28.39.*`.
struct ExpectedDevice {
  std::optional<std::string> name;   ///< name of a NIC: "mlx5_0"
  std::optional<std::string> pci;    ///< "0000:18:00.0"
  int count = 1;                     ///< number of such devices; only without `name` and `pci`
  std::optional<std::string> pci_id; ///< PCI ids of vendor and device: "10de:2330"
  std::optional<std::string> model;  ///< model of a GPU
  std::optional<std::string> firmware;
  std::optional<std::string> vbios;      ///< VBIOS version of a GPU
  std::optional<int> pcie_width;         ///< lanes
  std::optional<double> pcie_speed_GTps; ///< for NICs only, because an idle GPU lowers its speed
  std::optional<int> nvlinks;            ///< active links of a GPU
  std::vector<ExpectedPort> ports;

  bool is_named() const { return name || pci; }
};

struct Expectation {
  std::optional<std::vector<ExpectedDevice>> gpus, nics; ///< nothing: not compared
  std::optional<int> nvswitches;
  /// Patterns of versions in host_json(), by "kernel", "nvidia", "cuda", "mlx5_core", ...
  std::map<std::string, std::string> versions;
};

/// The content of a file for --expect: what this node has, without what differs between nodes of
/// one type (host name, serial numbers, addresses of ports), and without what is unknown here.
/// @param host result of host_json()
std::string record_expectation(const Node& node, const nlohmann::json& host);

/// Throws Error (usage) that names the place in the file: not JSON, no format or a newer one, an
/// unknown key (with the nearest known one), a value of the wrong type or out of range, a `count`
/// above 1 for a device with a name or PCI address.
/// @param file name of the file, for the message
Expectation parse_expectation(const std::string& text, const std::string& file);

/// Returns what the node lacks, and where it differs:
/// - expected-missing (error): a device is missing
/// - expected-differs (error): a device, the number of NVSwitches, or a version differs or cannot
///   be read here; one finding for all differences of a device
/// - expected-extra (warning): GPUs or RDMA NICs that are not expected, if the file has a list of
///   their kind
/// A device is identified by its name or, if it has none here, by its PCI address. Devices with
/// neither are counted, beginning with those that match.
Findings compare_with_expectation(const Expectation& expectation, const Node& node,
                                  const nlohmann::json& host);

} // namespace shmemctl
