// NCCL's <net> elements: which devices they are.
#pragma once

#include <string>
#include <vector>

#include "src/topo/node.h"
#include "src/topo/readers/xml.h"

namespace shmemctl::nccl {

/// True if NCCL's <net> of this name, GUID and port is an RDMA device; false for the network
/// interfaces of its socket transport; unknown if neither shows.
Fact<bool> rdma_of_net(const XmlElement& net);

/// The NICs of one <nic> element, in file order: nets of one name are the ports of one device.
/// `pci` and `numa` are left to the caller; a net without name gives a NIC without name.
/// @param on_pci the <nic> stands below a <pci>, whose function the devices share
std::vector<Nic> nics_of(const XmlElement& nic, bool on_pci);

/// A NIC that is known by its PCI class only.
Nic nic_of_class(std::uint32_t class_code, const Fact<std::uint16_t>& vendor,
                 const Fact<std::uint16_t>& device, const std::string& origin);

} // namespace shmemctl::nccl
