// NCCL's <net> elements: which devices they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/topo/node.h"
#include "src/topo/readers/xml.h"

namespace shmemctl::nccl {

/// True if NCCL's <net> of this name, GUID and port is an RDMA device; false for the network
/// interfaces of its socket transport; unknown if neither shows.
Fact<bool> rdma_of_net(const XmlElement& net);

/// The verbs devices behind NCCL's name of a device: NCCL joins the names of those that it merges
/// by "+", and appends "_dma" to one that it reaches through its data-direct function.
struct VerbsNames {
  std::vector<std::string> names; ///< at least one
  bool data_direct = false;
};
VerbsNames verbs_names(const std::string& nccl_name);

/// One device of a <nic>, and what only NCCL's own words say about it.
struct NetDevice {
  Nic nic;
  std::optional<int> dev;   ///< NCCL's number: its place in the enumeration of the verbs library
  bool data_direct = false; ///< the <pci> around it is the data-direct function, not the HCA
  bool merged = false;      ///< the <pci> around it is that of the first of several merged devices
};

/// The devices of one <nic> element, in file order: nets of one name are the ports of one device.
/// `pci` and `numa` are left to the caller; a net without name gives a NIC without name.
/// @param on_pci the <nic> stands below a <pci>, whose function the devices share
std::vector<NetDevice> devices_of(const XmlElement& nic, bool on_pci);

/// A NIC that is known by its PCI class only.
Nic nic_of_class(std::uint32_t class_code, const Fact<std::uint16_t>& vendor,
                 const Fact<std::uint16_t>& device, const std::string& origin);

} // namespace shmemctl::nccl
