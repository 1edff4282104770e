#include <nlohmann/json.hpp>

#include "src/topo/distance.h"
#include "src/topo/json/contract.h"
#include "src/topo/json/matrix.h"
#include "src/topo/json/writer.h"

namespace shmemctl::model_json {

namespace {

using nlohmann::json;

const PciDevice* pci_of(const Node& node, int entry) {
  return entry < 0 ? nullptr : &node.pci[static_cast<std::size_t>(entry)];
}

void put_pci(Writer& writer, const Node& node, int entry) {
  const PciDevice* device = pci_of(node, entry);
  writer.plain("pci", device ? known(to_string(device->address), "")
                             : unknown<std::string>("the source has no PCI address of it"));
}

void put_link(json& object, const Node& node, int entry) {
  if (const PciDevice* device = pci_of(node, entry)) {
    Writer writer;
    writer.plain("speed_GTps", device->link.speed_GTps);
    writer.plain("width", device->link.width);
    writer.plain("max_speed_GTps", device->link.max_speed_GTps);
    writer.plain("max_width", device->link.max_width);
    object["pcie"] = writer.take();
  }
}

json gpu_json(const Node& node, const Gpu& gpu) {
  Writer writer;
  writer("index", gpu.index);
  put_pci(writer, node, gpu.pci);
  writer.plain("numa", gpu.numa);
  if (gpu.numa_affinity)
    writer.plain("numa_affinity", gpu.numa_affinity);
  if (gpu.memory_numa)
    writer.plain("memory_numa", gpu.memory_numa);
  writer.plain("name", gpu.name);
  writer.plain("uuid", gpu.uuid);
  writer.plain("vendor", gpu.vendor.empty() ? unknown<std::string>("the source does not tell")
                                            : known(gpu.vendor, ""));
  writer.plain("cpu_affinity", gpu.cpus);
  json object = writer.take();
  put_link(object, node, gpu.pci);
  return object;
}

json gid_json(const Gid& gid) {
  Writer writer;
  writer("index", gid.index);
  writer("value", gid.value);
  writer.plain("type", gid.type);
  writer.plain("netdev", gid.netdev);
  return writer.take();
}

json port_json(const NicPort& port) {
  Writer writer;
  writer("number", port.number);
  writer.plain("state", port.state);
  writer.plain("link_layer", port.link_layer);
  writer.plain("rate_Gbps", port.rate_Gbps);
  writer.plain("lid", port.lid);
  writer.plain("active_mtu_bytes", port.active_mtu_bytes);
  writer.plain("netdev", port.netdev);
  json object = writer.take();
  object["gids"] = json::array();
  for (const Gid& gid : port.gids)
    object["gids"].push_back(gid_json(gid));
  return object;
}

/// The value that all ports of a NIC share.
template <class T>
Fact<T> shared_by_ports(const Nic& nic, Fact<T> NicPort::*field) {
  if (nic.ports.empty())
    return unknown<T>("the source does not tell about ports");
  const Fact<T>& first = nic.ports[0].*field;
  for (const NicPort& port : nic.ports)
    if ((port.*field).value != first.value)
      return unknown<T>("its ports differ");
  return first;
}

json nic_json(const Node& node, const Nic& nic) {
  Writer writer;
  writer("name", nic.name);
  writer.added("unnamed", nic.unnamed);
  if (nic.source_number)
    writer.plain("source_number", nic.source_number);
  put_pci(writer, node, nic.pci);
  writer.plain("numa", nic.numa);
  writer.plain("rdma", nic.rdma);
  writer.plain("driver", nic.driver);
  writer.plain("link_layer", shared_by_ports(nic, &NicPort::link_layer));
  writer.plain("rate_Gbps", shared_by_ports(nic, &NicPort::rate_Gbps));
  json object = writer.take();
  put_link(object, node, nic.pci);
  object["ports"] = json::array();
  for (const NicPort& port : nic.ports)
    object["ports"].push_back(port_json(port));
  return object;
}

} // namespace

json contract_json(const Node& node) {
  json topology{{"gpus", json::array()},
                {"nics", json::array()},
                {"other_nics", json::array()},
                {"source", node.format},
                {"notes", node.notes}};
  json labels = json::array();
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    topology["gpus"].push_back(gpu_json(node, node.gpus[i]));
    labels.push_back("GPU" + std::to_string(i));
    shown.push_back(i);
  }
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Nic& nic = node.nics[i];
    const bool other = nic.rdma && !*nic.rdma;
    topology[other ? "other_nics" : "nics"].push_back(nic_json(node, nic));
    if (other)
      continue;
    labels.push_back(nic.name);
    shown.push_back(node.gpus.size() + i);
  }
  topology["distances"] = matrix_json(distance_matrix(node), shown);
  topology["distances"]["labels"] = std::move(labels);
  if (!node.remarks.empty())
    topology["remarks"] = node.remarks;
  if (node.hidden_nics > 0)
    topology["hidden_nics"] = node.hidden_nics;
  if (node.hostname.empty()) {
    topology["hostname"] = nullptr;
    topology["hostname_reason"] = "the source does not tell";
  } else {
    topology["hostname"] = node.hostname;
  }
  return topology;
}

} // namespace shmemctl::model_json
