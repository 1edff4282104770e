// hwloc's object tree, from its XML or from this machine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/model/topo/cpus.h"
#include "src/model/topo/node.h"
#include "src/model/topo/readers/xml.h"

namespace shmemctl::hwloc {

// The content of an hwloc XML document about one machine, in hwloc's terms. Three dialects: 1.x (no
// version; sockets, NUMA nodes that contain other objects), 2.x (memory children) and 3.x (OS
// device types as bit masks, infos at the top level).

/// Kinds of OS devices that matter here; a device may be of several (bit masks in 3.x).
struct OsDevice {
  std::string name;
  std::string backend; ///< "CUDA", "NVML", "RSMI", "LevelZero", "OpenCL", ... or ""
  bool network = false;
  bool openfabrics = false;
  bool gpu = false; ///< GPU or co-processor
  std::string gp_index;
  const XmlElement* element = nullptr;
  Fact<int> numa;

  std::string info(const std::string& key) const;
};

/// A PCI function that is not a bridge, with its OS devices.
struct PciFunction {
  PciDevice device;     ///< parent and host_bridge are set
  std::string subtype;  ///< "NVSwitch"
  std::string gp_index; ///< number by which distance matrices refer to the object
  std::string name;     ///< info PCIDevice
  bool below_bridge = false;
  std::vector<OsDevice> os_devices;
};

/// Everything found. Bridges are already in `node.pci`; functions are not.
struct Tree {
  Node node;
  std::vector<PciFunction> functions;
  std::vector<OsDevice> loose;         ///< OS devices that belong to no PCI function
  std::map<PciAddress, int> endpoints; ///< functions that are listed in node.pci
};

/// Value of <info name="key" .../> directly below `element`, or nullptr.
const std::string* find_info(const XmlElement& element, const std::string& key);

/// Walks a document whose root is <topology>. Throws Error (usage) with line and column for objects
/// that lack required attributes.
Tree read_tree(const XmlElement& topology, const std::string& subject);

/// Adds the GPUs of the functions (and loose ones) to `tree.node`, without links between GPUs.
void add_gpus(Tree& tree);
/// Adds the links of the matrix NVLinkBandwidth in `topology`, after add_gpus(); notes xGMI ones.
void add_gpu_links(Tree& tree, const XmlElement& topology);
/// Adds the NICs of the functions (and loose ones) to `tree.node`.
void add_nics(Tree& tree);

/// The function's index in node.pci, to which it is appended if it is not there yet.
int pci_entry(Tree& tree, const PciFunction& function);

} // namespace shmemctl::hwloc

namespace shmemctl {

/// The prefix of a field's key (src/model/topo/node_fields.h) in the name of its info element.
inline constexpr const char* hwloc_info_prefix = "shmemctl:";

/// The node from the infos that shmemctl itself wrote; empty if there are none. Throws Error
/// (usage) with the position of a field that is malformed or missing.
std::optional<Node> read_hwloc_dump(const XmlElement& topology, const std::string& subject);

} // namespace shmemctl
