// The key `topology` of a report: GPUs, NICs and the distance matrix, next to the complete node.
#include "src/model/topo/json/report_topology.h"

#include <map>
#include <nlohmann/json.hpp>

#include "src/base/text.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/json/json_fields.h"

namespace shmemctl::model_json {

namespace {

using nlohmann::json;

/// Builds the node device by device; GPUs and NICs with the same PCI address share one PCI device.
class ContractReader {
public:
  ContractReader(const json& topology, const JsonPath& json_path, const std::string& subject)
      : topology_(topology, json_path, subject), path_(json_path), subject_(subject) {}

  Node read() {
    Fact<std::string> hostname;
    topology_("hostname", hostname);
    node_.hostname = hostname.value.value_or("");
    if (const json* source = topology_.find("source"); source && source->is_string())
      node_.format = source->get<std::string>();
    topology_.added("notes", node_.notes);
    topology_.added("remarks", node_.remarks);
    topology_.added("hidden_nics", node_.hidden_nics);
    if (node_.hidden_nics < 0 || node_.hidden_nics > static_cast<int>(max_listed_devices))
      complain(subject_, path_.member("hidden_nics"),
               "expected an integer from 0 to " + std::to_string(max_listed_devices));
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
      complain(subject_, path_.member(key), "expected a list");
    if (value.size() > max_listed_devices - node_.gpus.size() - node_.nics.size())
      complain(subject_, path_.member(key),
               "more than " + std::to_string(max_listed_devices) + " devices");
    return value;
  }

  /// Index in Node::pci of the device that the member `pci` names, which is added if it is new; -1
  /// if the address is unknown.
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
    const JsonPath gpus_path = path_.member("gpus");
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      const JsonPath json_path = gpus_path.item(i);
      const Reader reader(gpus[i], json_path, subject_);
      Gpu gpu;
      reader("index", gpu.index);
      if (gpu.index != static_cast<int>(i))
        complain(subject_, json_path.member("index"),
                 "expected " + std::to_string(i) + ", the position in the list");
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
    const JsonPath nics_path = path_.member(key);
    for (std::size_t i = 0; i < nics.size(); ++i) {
      const JsonPath json_path = nics_path.item(i);
      const Reader reader(nics[i], json_path, subject_);
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

  /// A link layer or rate next to the name, without a list of ports, is that of port 1.
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
  std::vector<std::size_t> devices_of(const std::vector<std::string>& labels,
                                      const JsonPath& json_path) {
    std::map<std::string, std::size_t> numbers;
    for (std::size_t i = 0; i < node_.nics.size(); ++i)
      numbers.emplace(node_.nics[i].name, node_.gpus.size() + i);
    for (std::size_t i = 0; i < node_.gpus.size(); ++i)
      numbers["GPU" + std::to_string(i)] = i;
    std::vector<std::size_t> devices;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto found = numbers.find(labels[i]);
      if (found == numbers.end())
        complain(subject_, json_path.item(i),
                 "\"" + printable(labels[i], 60) +
                     "\" is not a device of this report, or is listed twice");
      devices.push_back(found->second);
      numbers.erase(found);
    }
    return devices;
  }

  void read_distances() {
    const JsonPath json_path = path_.member("distances");
    const json& distances = topology_.require("distances");
    const Reader reader(distances, json_path, subject_);
    std::vector<std::string> labels;
    reader("labels", labels);
    const std::vector<std::size_t> devices = devices_of(labels, json_path.member("labels"));
    const DistanceMatrix read = matrix_from_json(distances, json_path, labels.size(), subject_);
    const std::size_t size = node_.gpus.size() + node_.nics.size();
    const Distance absent{std::nullopt, 0, "not in the report's matrix"};
    DistanceMatrix matrix(size, std::vector<Distance>(size, absent));
    for (std::size_t i = 0; i < size; ++i)
      matrix[i][i] = {PathClass::self, 0, ""};
    for (std::size_t i = 0; i < devices.size(); ++i)
      for (std::size_t j = 0; j < devices.size(); ++j)
        matrix[devices[i]][devices[j]] = read[i][j];
    node_.recorded = std::move(matrix);
  }

  const Reader topology_;
  const JsonPath& path_;
  const std::string& subject_;
  std::map<PciAddress, int> entries_;
  Node node_;
};

} // namespace

Node node_from_contract(const json& topology, const JsonPath& json_path,
                        const std::string& subject) {
  return ContractReader(topology, json_path, subject).read();
}

namespace {

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
  writer.plain("vendor", gpu.vendor.empty() ? unknown<std::string>("not reported by the source")
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

/// The value that all ports of a NIC share, if they do.
template <class T>
Fact<T> shared_by_ports(const Nic& nic, Fact<T> NicPort::*field) {
  if (nic.ports.empty())
    return unknown<T>("the source does not report ports");
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
    topology["hostname_reason"] = "not reported by the source";
  } else {
    topology["hostname"] = node.hostname;
  }
  return topology;
}

namespace {

/// A string if that is sufficient, null if unknown, else an object.
json cell_json(const Distance& distance) {
  if (!distance.path && distance.links == 0)
    return nullptr;
  const std::string word = to_string(distance);
  if (const std::optional<Distance> read = parse_distance(word); read && *read == distance)
    return word;
  json cell{{"links", distance.links}};
  if (distance.path)
    cell["path"] = to_string(*distance.path);
  return cell;
}

Distance read_cell(const json& cell, const JsonPath& json_path, const std::string& subject) {
  if (cell.is_null())
    return {std::nullopt, 0, "not in the report"};
  if (cell.is_object()) {
    Distance distance;
    const Reader reader(cell, json_path, subject);
    reader("links", distance.links);
    if (const json* word = reader.find("path")) {
      distance.path = word->is_string() ? parse_path_class(word->get<std::string>()) : std::nullopt;
      if (!distance.path)
        complain(subject, json_path.member("path"),
                 "expected a value of nvidia-smi topo, such as NV4, PIX or SYS");
    }
    return distance;
  }
  if (!cell.is_string())
    complain(subject, json_path, "expected a value of nvidia-smi topo, such as NV4, PIX or SYS");
  const auto& word = cell.get_ref<const std::string&>();
  const std::optional<Distance> distance = parse_distance(word);
  if (!distance)
    complain(subject, json_path,
             "\"" + printable(word, 40) +
                 "\" is not a value of nvidia-smi topo, such as NV4, PIX or SYS");
  return *distance;
}

void read_reasons(const json& groups, const JsonPath& json_path, DistanceMatrix& matrix,
                  const std::string& subject) {
  if (!groups.is_array())
    complain(subject, json_path, "expected a list");
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const JsonPath group = json_path.item(i);
    const Reader reader(groups[i], group, subject);
    std::string reason;
    std::vector<std::vector<std::size_t>> cells;
    reader("reason", reason);
    reader("cells", cells);
    for (std::size_t at = 0; at < cells.size(); ++at) {
      if (cells[at].size() != 2 || cells[at][0] >= matrix.size() || cells[at][1] >= matrix.size())
        complain(subject, group,
                 "item " + std::to_string(at) +
                     " of cells is not the indices of a row and a column of the matrix");
      Distance& distance = matrix[cells[at][0]][cells[at][1]];
      if (!distance.path)
        distance.reason = reason;
    }
  }
}

} // namespace

json matrix_json(const DistanceMatrix& matrix, const std::vector<std::size_t>& devices) {
  json rows = json::array();
  std::map<std::string, json> cells_of_reason;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    json row = json::array();
    for (std::size_t j = 0; j < devices.size(); ++j) {
      const Distance& distance = matrix[devices[i]][devices[j]];
      row.push_back(cell_json(distance));
      if (!distance.path)
        cells_of_reason[distance.reason.empty() ? "not reported by the source" : distance.reason]
            .push_back({i, j});
    }
    rows.push_back(std::move(row));
  }
  json object{{"matrix", std::move(rows)}};
  for (auto& [reason, cells] : cells_of_reason)
    object["unknown"].push_back({{"reason", reason}, {"cells", std::move(cells)}});
  return object;
}

DistanceMatrix matrix_from_json(const json& object, const JsonPath& json_path, std::size_t size,
                                const std::string& subject) {
  const Reader reader(object, json_path, subject);
  const json& rows = reader.require("matrix");
  const JsonPath rows_path = json_path.member("matrix");
  const std::string expected = "expected a list of " + std::to_string(size);
  if (!rows.is_array() || rows.size() != size)
    complain(subject, rows_path, expected + " rows");
  DistanceMatrix matrix(size, std::vector<Distance>(size));
  for (std::size_t i = 0; i < size; ++i) {
    const JsonPath row_path = rows_path.item(i);
    if (!rows[i].is_array() || rows[i].size() != size)
      complain(subject, row_path, expected + " columns");
    for (std::size_t j = 0; j < size; ++j)
      matrix[i][j] = read_cell(rows[i][j], row_path.item(j), subject);
  }
  if (const json* groups = reader.find("unknown"))
    read_reasons(*groups, json_path.member("unknown"), matrix, subject);
  return matrix;
}

} // namespace shmemctl::model_json
