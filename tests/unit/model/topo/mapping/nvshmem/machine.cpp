#include "tests/unit/model/topo/mapping/nvshmem/machine.h"

#include <fmt/format.h>

#include "src/model/topo/mapping/nvshmem_mapping.h"

namespace shmemctl {

std::string Machine::add_switch() {
  const int bus = 0x10 * ++switches_;
  return fmt::format("/sys/devices/pci0000:{0:02x}/0000:{0:02x}:01.0/0000:{1:02x}:00.0", bus,
                     bus + 1);
}

std::string Machine::next_slot(const std::string& below) {
  ++slots_;
  return below + fmt::format("/0000:f0:{:02x}.{}/0001:{:02x}:00.0", slots_ / 8, slots_ % 8, slots_);
}

int Machine::add_pci(const std::string& path, int numa) {
  PciDevice device;
  device.sysfs_path = path;
  device.address = parse_pci_address(path.substr(path.rfind('/') + 1)).value_or(PciAddress{});
  device.numa = numa < 0 ? unknown<int>("numa_node reads -1") : known(numa, "test");
  node.pci.push_back(device);
  return static_cast<int>(node.pci.size()) - 1;
}

void Machine::add_gpu(const std::string& below, int numa) {
  add_gpu_at(next_slot(below), numa);
}
void Machine::add_nic(const std::string& below, int numa, const std::string& name, int ports) {
  add_nic_at(next_slot(below), numa, name, ports);
}

void Machine::add_gpu_at(const std::string& path, int numa) {
  Gpu gpu;
  gpu.index = static_cast<int>(node.gpus.size());
  gpu.vendor = "nvidia";
  gpu.pci = add_pci(path, numa);
  node.gpus.push_back(gpu);
}

void Machine::add_nic_at(const std::string& path, int numa, const std::string& name, int ports) {
  Nic nic;
  nic.name = name.empty() ? fmt::format("mlx5_{}", node.nics.size()) : name;
  nic.rdma = known(true, "test");
  nic.pci = path.empty() ? -1 : add_pci(path, numa);
  nic.virtual_device = path.empty();
  for (int number = 1; number <= ports; ++number) {
    NicPort port;
    port.number = number;
    port.state = known(PortState::active, "test");
    port.link_layer = known(LinkLayer::infiniband, "test");
    nic.ports.push_back(port);
  }
  node.nics.push_back(nic);
}

void Machine::add_data_direct(const std::string& below, int numa) {
  const int entry = add_pci(next_slot(below), numa);
  node.nics.back().data_direct = known(node.pci[static_cast<std::size_t>(entry)].address, "test");
}

Machine switched_machine(int switches, int gpus, int nics) {
  Machine machine;
  for (int i = 0; i < switches; ++i) {
    const std::string below = machine.add_switch();
    const int numa = i < (switches + 1) / 2 ? 0 : 1;
    for (int gpu = 0; gpu < gpus; ++gpu)
      machine.add_gpu(below, numa);
    for (int nic = 0; nic < nics; ++nic)
      machine.add_nic(below, numa);
  }
  return machine;
}

MappingRequest request_for(const Node& node, const Ask& ask) {
  MappingRequest request;
  request.world = ask.world;
  request.nvshmem.version = ask.version;
  request.nvshmem.transport = ask.transport;
  request.nvshmem.enable_nic_pe_mapping = ask.mapping;
  if (ask.hca_list != "unset")
    request.nvshmem.hca_list = ask.hca_list;
  if (ask.hca_pe_mapping != "unset")
    request.nvshmem.hca_pe_mapping = ask.hca_pe_mapping;
  request.gpus = ask.gpus;
  for (std::size_t gpu = 0; ask.gpus.empty() && gpu < node.gpus.size(); ++gpu)
    request.gpus.push_back(static_cast<int>(gpu));
  return request;
}

namespace {

int row_of(const Mapping& mapping, const NicUse& use) {
  for (std::size_t row = 0; row < mapping.table.entries.size(); ++row) {
    const TableEntry& entry = mapping.table.entries[row];
    if (mapping.table_nics[static_cast<std::size_t>(entry.device)] == use.nic &&
        entry.port == use.port)
      return static_cast<int>(row);
  }
  return -1;
}

} // namespace

Answer rows_of(const Node& node, const Ask& ask) {
  const Mapping mapping = map_nvshmem(node, request_for(node, ask));
  Answer answer;
  for (const PeMapping& pe : mapping.pes) {
    answer.emplace_back();
    for (const NicUse& use : pe.nics)
      answer.back().push_back(row_of(mapping, use));
  }
  return answer;
}

std::vector<int> first_nics(const Node& node, const Ask& ask) {
  std::vector<int> nics;
  for (const PeMapping& pe : map_nvshmem(node, request_for(node, ask)).pes)
    nics.push_back(pe.nics.empty() ? -1 : pe.nics.front().nic);
  return nics;
}

Answer singles(const std::vector<int>& rows) {
  Answer answer;
  for (const int row : rows)
    answer.push_back({row});
  return answer;
}

NvshmemVersion newest(ReleaseFamily family) {
  for (const NvshmemVersion& version : representative_versions())
    if (family_of(version) == family)
      return version;
  return {};
}

} // namespace shmemctl
