// Reads this machine, or the copy of one under a system root.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/sysroot.h"
#include "src/model/topo/node.h"
#include "src/model/topo/readers/nvml.h"

namespace shmemctl {

/// One attribute file: its trimmed text, or why there is none. Text that is not printable UTF-8 or
/// too long for an attribute is rejected, so that hostile trees never reach a fact.
struct Attribute {
  std::optional<std::string> text;
  std::string origin; ///< the path, or why there is no text (with the path)
};
Attribute read_attribute(const Sysroot& sysroot, const std::string& path);

/// True for names that may reach the model: UTF-8 without control characters, of sane length.
bool is_device_name(const std::string& name);

/// A fact from an attribute file through one of the pure parsers (std::optional<T>(text)).
template <class T, class Parse>
Fact<T> read_fact(const Sysroot& sysroot, const std::string& path, Parse parse) {
  const Attribute attribute = read_attribute(sysroot, path);
  if (!attribute.text)
    return unknown<T>(attribute.origin);
  const std::optional<T> value = parse(*attribute.text);
  if (!value)
    return unknown<T>(path + " reads \"" + attribute.text->substr(0, 40) + "\"");
  return known<T>(*value, path);
}
/// The text itself; empty text is unknown.
Fact<std::string> read_text_fact(const Sysroot& sysroot, const std::string& path);

/// Packages and NUMA nodes of this machine, by hwloc; and the nodes that hwloc leaves out (GPU
/// memory). Falls back to read_cpus_sysfs, with a note, if hwloc cannot.
void read_cpus_hwloc(const Sysroot& sysroot, Node& node);
/// The same from /sys/devices/system/{cpu,node} alone, for a copied tree: hwloc would follow its
/// links out of the root and block on a FIFO in it.
void read_cpus_sysfs(const Sysroot& sysroot, Node& node);
/// Adds the NUMA nodes of sysfs that `node` does not have yet, and determines which are GPU memory.
void add_memory_nodes(const Sysroot& sysroot, Node& node);

/// The PCI functions of a machine, read on demand: GPUs, network functions and NVSwitches are read
/// at construction; others are added by add_function(), each with the bridges above it.
class PciTree {
public:
  PciTree(const Sysroot& sysroot, Node& node);

  /// Index in Node::pci of a function, -1 if the tree has none at this address.
  int find(const PciAddress& address) const;
  /// As find(), but reads a function that was not read so far.
  int add_function(const PciAddress& address);
  /// Adds a function that only a library knows, with all attributes unknown.
  int add_unlisted(const PciAddress& address, const std::string& reason);
  /// The nearest PCI function at or above a sysfs path (a virtio device, an mlx5 sub-function),
  /// added if needed; -1 if there is none.
  int add_ancestor(const std::string& sysfs_path);

private:
  int add_listed(const PciAddress& address, const std::string& name);
  int add_chain(const std::string& path);
  int add_host_bridge(const std::string& component);
  void describe(PciDevice& device, const std::string& folder) const;
  void find_host_bridge_numa();

  const Sysroot& sysroot_;
  Node& node_;
  std::map<PciAddress, int> index_;
  std::map<PciAddress, std::string> names_; ///< as /sys/bus/pci/devices spells them
};

/// GPUs among the PCI functions, with the data of /proc/driver/nvidia/gpus.
void read_gpus(const Sysroot& sysroot, Node& node);
/// NVML's data about its GPUs, merged by PCI address; GPUs that the tree lacks are added.
void merge_nvml(Nvml& nvml, PciTree& pci, Node& node);

/// RDMA devices in `order` (names), then any others under /sys/class/infiniband in natural order.
void read_rdma_devices(const Sysroot& sysroot, const std::vector<std::string>& order, PciTree& pci,
                       Node& node);
/// The order of ibv_get_device_list() on this machine; empty if libibverbs is absent.
std::vector<std::string> verbs_device_order();
/// Network interfaces on PCI network functions that have no RDMA device.
void read_other_nics(const Sysroot& sysroot, PciTree& pci, Node& node);

/// The driver of a class device ("/sys/class/net/eth0"), by its device/driver link.
Fact<std::string> driver_of(const Sysroot& sysroot, const std::string& class_device);

/// The data of /sys/class/net about an interface that has a device.
struct Netdev {
  std::string name;
  int pci = -1;                        ///< index in Node::pci of the function behind it, -1 if none
  std::optional<long long> port_index; ///< dev_port: from 0
  bool representor = false;            ///< represents a VF or SF of the function, not the port
};
/// All interfaces with a PCI function behind them, in natural order of names.
std::vector<Netdev> list_netdevs(const Sysroot& sysroot, PciTree& pci);

} // namespace shmemctl
