#include <map>
#include <nlohmann/json.hpp>

#include "src/base/text.h"
#include "src/topo/json/contract.h"
#include "src/topo/json/matrix.h"
#include "src/topo/json/reader.h"

namespace shmemctl::model_json {

namespace {

using nlohmann::json;

/// Builds the node device by device; functions that share a PCI address share an entry.
class ContractReader {
public:
  ContractReader(const json& topology, const Place& place, const std::string& subject)
      : topology_(topology, place, subject), place_(place), subject_(subject) {}

  Node read() {
    Fact<std::string> hostname;
    topology_("hostname", hostname);
    node_.hostname = hostname.value.value_or("");
    if (const json* source = topology_.find("source"); source && source->is_string())
      node_.format = source->get<std::string>();
    topology_.added("notes", node_.notes);
    topology_.added("remarks", node_.remarks);
    topology_.added("hidden_nics", node_.hidden_nics);
    if (node_.hidden_nics < 0 || node_.hidden_nics > static_cast<int>(most_devices))
      complain(subject_, place_.member("hidden_nics"), "no number of NICs");
    read_gpus();
    read_nics("nics", true);
    if (topology_.find("other_nics"))
      read_nics("other_nics", false);
    read_distances();
    normalize(node_);
    return std::move(node_);
  }

private:
  const json& list(const char* key) const {
    const json& value = topology_.require(key);
    if (!value.is_array())
      complain(subject_, place_.member(key), "expected a list");
    if (value.size() > most_devices - node_.gpus.size() - node_.nics.size())
      complain(subject_, place_.member(key),
               "more than " + std::to_string(most_devices) + " devices");
    return value;
  }

  /// Index in Node::pci of the member `pci`, -1 if it is unknown.
  int pci_entry(const Reader& reader, const Fact<int>& numa) {
    Fact<PciAddress> address;
    reader("pci", address);
    if (!address)
      return -1;
    const auto [found, added] = entries_.emplace(*address, static_cast<int>(node_.pci.size()));
    if (added) {
      PciDevice device;
      device.address = *address;
      const std::string reason = "not in the report";
      device.class_code = unknown<std::uint32_t>(reason);
      for (Fact<std::uint16_t>* id :
           {&device.vendor, &device.device, &device.subsystem_vendor, &device.subsystem_device})
        *id = unknown<std::uint16_t>(reason);
      device.numa = numa;
      reader("pcie", device.link);
      node_.pci.push_back(std::move(device));
    }
    return found->second;
  }

  void read_gpus() {
    const json& gpus = list("gpus");
    const Place gpus_place = place_.member("gpus");
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      const Place place = gpus_place.item(i);
      const Reader reader(gpus[i], place, subject_);
      Gpu gpu;
      reader("index", gpu.index);
      if (gpu.index != static_cast<int>(i))
        complain(subject_, place.member("index"), "expected " + std::to_string(i));
      Fact<std::string> vendor;
      reader("vendor", vendor);
      gpu.vendor = vendor.value.value_or("");
      reader("name", gpu.name);
      reader("uuid", gpu.uuid);
      reader("numa", gpu.numa);
      reader("numa_affinity", gpu.numa_affinity);
      reader("memory_numa", gpu.memory_numa);
      reader("cpu_affinity", gpu.cpus);
      gpu.driver_index = unknown<int>("not in the report");
      gpu.pci = pci_entry(reader, gpu.numa);
      node_.gpus.push_back(std::move(gpu));
    }
  }

  void read_nics(const char* key, bool rdma) {
    const json& nics = list(key);
    const Place nics_place = place_.member(key);
    for (std::size_t i = 0; i < nics.size(); ++i) {
      const Place place = nics_place.item(i);
      const Reader reader(nics[i], place, subject_);
      Nic nic;
      reader("name", nic.name);
      reader.added("unnamed", nic.unnamed);
      reader("source_number", nic.source_number);
      reader("rdma", nic.rdma);
      if (!rdma)
        nic.rdma = known(false, "it is among other_nics");
      reader("driver", nic.driver);
      reader("numa", nic.numa);
      nic.firmware = unknown<std::string>("not in the report");
      nic.node_guid = unknown<std::string>("not in the report");
      nic.data_direct = unknown<PciAddress>("not in the report");
      nic.pci = pci_entry(reader, nic.numa);
      if (reader.find("ports"))
        reader("ports", nic.ports);
      if (nic.ports.empty())
        add_port_of_nic(reader, nic);
      node_.nics.push_back(std::move(nic));
    }
  }

  /// A link layer or rate that stands beside the name, without a list of ports, is port 1's.
  void add_port_of_nic(const Reader& reader, Nic& nic) {
    NicPort port;
    const std::string reason = "not in the report";
    reader("link_layer", port.link_layer);
    reader("rate_Gbps", port.rate_Gbps);
    if (!port.link_layer && !port.rate_Gbps)
      return;
    port.state = unknown<PortState>(reason);
    port.lid = unknown<int>(reason);
    port.active_mtu_bytes = unknown<int>(reason);
    port.netdev = unknown<std::string>(reason);
    nic.ports.push_back(std::move(port));
  }

  /// The device of each label: "GPU<index>", else the NIC of that name.
  std::vector<std::size_t> devices_of(const std::vector<std::string>& labels, const Place& place) {
    std::map<std::string, std::size_t> numbers;
    for (std::size_t i = 0; i < node_.nics.size(); ++i)
      numbers.emplace(node_.nics[i].name, node_.gpus.size() + i);
    for (std::size_t i = 0; i < node_.gpus.size(); ++i)
      numbers["GPU" + std::to_string(i)] = i;
    std::vector<std::size_t> devices;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto found = numbers.find(labels[i]);
      if (found == numbers.end())
        complain(subject_, place.item(i),
                 "\"" + printable(labels[i], 60) +
                     "\" is no device of this report, or twice there");
      devices.push_back(found->second);
      numbers.erase(found);
    }
    return devices;
  }

  void read_distances() {
    const Place place = place_.member("distances");
    const json& distances = topology_.require("distances");
    const Reader reader(distances, place, subject_);
    std::vector<std::string> labels;
    reader("labels", labels);
    const std::vector<std::size_t> devices = devices_of(labels, place.member("labels"));
    const DistanceMatrix read = matrix_from_json(distances, place, labels.size(), subject_);
    const std::size_t size = node_.gpus.size() + node_.nics.size();
    const Distance absent{std::nullopt, 0, "the report's matrix does not have it"};
    DistanceMatrix matrix(size, std::vector<Distance>(size, absent));
    for (std::size_t i = 0; i < size; ++i)
      matrix[i][i] = {PathClass::self, 0, ""};
    for (std::size_t i = 0; i < devices.size(); ++i)
      for (std::size_t j = 0; j < devices.size(); ++j)
        matrix[devices[i]][devices[j]] = read[i][j];
    node_.recorded = std::move(matrix);
  }

  const Reader topology_;
  const Place& place_;
  const std::string& subject_;
  std::map<PciAddress, int> entries_;
  Node node_;
};

} // namespace

Node node_from_contract(const json& topology, const Place& place, const std::string& subject) {
  return ContractReader(topology, place, subject).read();
}

} // namespace shmemctl::model_json
