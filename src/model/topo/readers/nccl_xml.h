// Reads NCCL topology XML into a Node.
#pragma once

#include <fmt/format.h>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/model/topo/node.h"
#include "src/model/topo/readers/xml.h"

namespace shmemctl::nccl {

/// Why a fact is unknown if NCCL has no attribute for it.
inline constexpr const char* silent = "NCCL's XML does not report";

inline std::string line_of(const XmlElement& element) {
  return "line " + std::to_string(element.line);
}

/// Bad input at `element`.
inline Error bad_element(const std::string& subject, const XmlElement& element,
                         const std::string& problem) {
  return input_error(
      subject, element.position(), problem,
      "pass a topology file dumped by NCCL (set NCCL_TOPO_DUMP_FILE and run any NCCL job)");
}

/// "0x10de" up to `limit`; unknown if it is missing or empty. Throws Error (usage) for other words.
template <class T>
Fact<T> hexadecimal(const std::string& subject, const XmlElement& element, const char* attribute,
                    long long limit) {
  const std::string text = element.get(attribute);
  if (text.empty())
    return unknown<T>(silent);
  const std::optional<long long> value = parse_integer(text, 16);
  if (!value || *value < 0 || *value > limit)
    throw bad_element(subject, element,
                      fmt::format("{} is {}, not a hexadecimal number from 0 to {:#x}", attribute,
                                  printable(text, 40), limit));
  return known(static_cast<T>(*value), line_of(element) + ", " + attribute);
}

/// Fills in the data of a <gpu>: the driver's number, the links, and the vendor if it is not known
/// yet. NVSwitches at the ends of links are added to `nvswitches`. Throws Error (usage) with line
/// and column.
/// @return the number of link elements whose target GPU is unknown: they count in no distance
int read_gpu(const XmlElement& element, const std::string& subject, Gpu& gpu,
             std::set<PciAddress>& nvswitches);

/// True if NCCL's <net> of this name, GUID and port is an RDMA device; false for a network
/// interface of its socket transport; unknown otherwise.
Fact<bool> rdma_of_net(const XmlElement& net);

/// The verbs devices behind NCCL's name of a device: NCCL joins the names of those that it merges
/// by "+", and appends "_dma" to one that it reaches through its data-direct function.
struct VerbsNames {
  std::vector<std::string> names; ///< at least one
  bool data_direct = false;
};
VerbsNames verbs_names(const std::string& nccl_name);

/// One device of a <nic>, and what only NCCL reports about it.
struct NetDevice {
  Nic nic;
  std::optional<int> dev;   ///< NCCL's number: its place in the enumeration of the verbs library
  bool data_direct = false; ///< the <pci> around it is the data-direct function, not the HCA
  bool merged = false;      ///< the <pci> around it belongs to the first of several merged devices
};

/// The devices of one <nic> element, in file order: nets with the same name are the ports of one
/// device. `pci` and `numa` are left to the caller; a net without name gives a NIC without name.
/// @param on_pci the <nic> is below a <pci>, whose function the devices share
std::vector<NetDevice> devices_of(const XmlElement& nic, bool on_pci);

/// A NIC that is known by its PCI class only.
Nic nic_of_class(std::uint32_t class_code, const Fact<std::uint16_t>& vendor,
                 const Fact<std::uint16_t>& device, const std::string& origin);

/// The node that the <cpu>, <pci>, <gpu>, <nic> and <net> elements below <system> describe,
/// normalized. Throws Error (usage) with line and column.
Node node_of_system(const XmlElement& system, const std::string& subject);

} // namespace shmemctl::nccl
