#include "src/instruments/doctor/pcie.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

constexpr std::uint16_t good_control = 0x2936; // relaxed ordering on, read requests of 512 bytes
constexpr const char* origin = "test";

void healthy(Machine& m) {
  m.node = healthy_node();
}
void without_devices(Machine& m) {
  m.node = healthy_node();
  m.node.gpus.clear();
  m.node.nics.clear();
}

PcieLink& link_at(Machine& m, const char* address) {
  return function_at(m.node, address).link;
}

Scenarios widths() {
  const std::string id = "pcie-link-width";
  return {
      {id, "all at their maximum", healthy, pass, "current_link_width: 6 of 6 links", ""},
      {id, "a NIC at half its lanes",
       [](Machine& m) {
         healthy(m);
         link_at(m, nic_address[1]).width = known(8, origin);
       },
       fail, "0000:24:00.0 at 8 of 16 lanes", "lspci -vvs $d"},
      {id, "a GPU at half its lanes",
       [](Machine& m) {
         healthy(m);
         link_at(m, gpu_address[0]).width = known(8, origin);
       },
       fail, "0000:13:00.0 at 8 of 16 lanes", "0000:13:00.0"},
      {id, "the switch above at half its lanes",
       [](Machine& m) {
         healthy(m);
         link_at(m, "0000:11:00.0").width = known(8, origin);
       },
       fail, "0000:11:00.0 at 8 of 16 lanes", "0000:11:00.0"},
      {id, "a slot of eight lanes",
       [](Machine& m) {
         healthy(m);
         link_at(m, switch_to_gpu[0]).max_width = known(8, origin);
         link_at(m, switch_to_gpu[0]).width = known(8, origin);
         link_at(m, gpu_address[0]).width = known(8, origin);
       },
       warning, "0000:13:00.0 at 8 of 16 lanes", "slot"},
      {id, "a card of eight lanes in a slot of sixteen",
       [](Machine& m) {
         healthy(m);
         link_at(m, switch_to_gpu[0]).width = known(8, origin);
         link_at(m, gpu_address[0]).width = known(8, origin);
         link_at(m, gpu_address[0]).max_width = known(8, origin);
       },
       pass, "6 of 6 links", ""},
      {id, "lanes that a hypervisor made up",
       [](Machine& m) {
         healthy(m);
         for (PciDevice& device : m.node.pci) {
           device.link.width = known(0, origin);
           device.link.max_width = known(255, origin);
         }
       },
       skipped, "current_link_width", ""},
      {id, "no GPU and no NIC", without_devices, skipped, "", ""},
  };
}

Scenarios speeds() {
  const std::string id = "pcie-link-speed";
  return {
      {id, "all at their maximum", healthy, pass, "current_link_speed: 6 of 6 links", ""},
      {id, "a NIC below its maximum",
       [](Machine& m) {
         healthy(m);
         link_at(m, nic_address[0]).speed_GTps = known(16.0, origin);
       },
       fail, "0000:14:00.0 at 16 of 32 GT/s", "0000:14:00.0"},
      {id, "an idle GPU",
       [](Machine& m) {
         healthy(m);
         link_at(m, gpu_address[0]).speed_GTps = known(2.5, origin);
       },
       warning, "0000:13:00.0 at 2.5 of 32 GT/s", "nvidia-smi -q -d PERFORMANCE"},
      {id, "a slower slot",
       [](Machine& m) {
         healthy(m);
         link_at(m, "0000:12:01.0").max_speed_GTps = known(16.0, origin);
         link_at(m, nic_address[0]).speed_GTps = known(16.0, origin);
       },
       warning, "0000:14:00.0 at 16 of 32 GT/s", "slot"},
      {id, "unknown",
       [](Machine& m) {
         healthy(m);
         for (PciDevice& device : m.node.pci)
           device.link = {};
       },
       skipped, "current_link_speed", ""},
      {id, "no GPU and no NIC", without_devices, skipped, "", ""},
  };
}

/// @param acs_control what the bridge above the first GPU has; the others have none set
void with_bridges(Machine& m, std::uint16_t acs_control, std::size_t size = 4096) {
  m.node = healthy_node();
  for (const PciDevice& device : m.node.pci)
    if (device.kind == PciKind::bridge)
      m.files.write(doctor::config_path(device.address), config_bytes(size, 0, 0));
  m.files.write(doctor::config_path(function_at(m.node, switch_to_gpu[0]).address),
                config_bytes(size, 0, acs_control));
}

Scenarios redirects() {
  const std::string id = "pcie-acs";
  auto separate = [](Machine& m) {
    with_bridges(m, 0x1d);
    for (PciDevice& device : m.node.pci) // every function alone below its host bridge
      device.host_bridge = device.address.bus;
  };
  return {
      {id, "off", [](Machine& m) { with_bridges(m, 0); }, pass, "ACS redirect is off at 4 bridges",
       ""},
      {id, "source validation alone", [](Machine& m) { with_bridges(m, 0x01); }, pass,
       "ACS redirect is off", ""},
      {id, "on at one bridge", [](Machine& m) { with_bridges(m, 0x1d); }, warning,
       "ACS control of 1 of 4 bridges: 0000:12:00.0 0x001d",
       "sudo sh -c 'for b in 0000:12:00.0; do setpci -s $b ECAP_ACS+6.w=0:1c; done'"},
      {id, "upstream forwarding alone", [](Machine& m) { with_bridges(m, 0x10); }, pass,
       "ACS redirect is off", ""},
      {id, "on at a port above all that exchange data",
       [](Machine& m) {
         with_bridges(m, 0);
         m.files.write("/sys/bus/pci/devices/0000:10:01.0/config", config_bytes(4096, 0, 0x1d));
       },
       pass, "ACS redirect is off at 4 bridges", ""},
      {id, "only root may read", [](Machine& m) { with_bridges(m, 0x1d, 64); }, skipped,
       "256 bytes or fewer", "sudo shmemctl gather"},
      {id, "not in the copy", healthy, skipped, "/sys/bus/pci/devices/*/config",
       "sudo shmemctl gather"},
      {id, "nothing shares a host bridge", separate, skipped, "", ""},
      {id, "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
}

void with_iommu_groups(Machine& m, const std::string& type) {
  m.node = healthy_node();
  int number = 40;
  for (const char* address : {gpu_address[0], gpu_address[1], nic_address[0], nic_address[1]}) {
    const std::string group = "/sys/kernel/iommu_groups/" + std::to_string(number++);
    m.files.directory(group);
    if (!type.empty())
      m.files.write(group + "/type", type + "\n");
    m.files.link(std::string("/sys/bus/pci/devices/") + address + "/iommu_group", group);
  }
}

Scenarios translations() {
  const std::string id = "iommu";
  return {
      {id, "passthrough", [](Machine& m) { with_iommu_groups(m, "identity"); }, pass,
       "/sys/kernel/iommu_groups/40/type: identity", ""},
      {id, "translating", [](Machine& m) { with_iommu_groups(m, "DMA-FQ"); }, warning,
       "/sys/kernel/iommu_groups/40/type: DMA-FQ", "iommu=pt"},
      {id, "an old kernel, told to pass through",
       [](Machine& m) {
         with_iommu_groups(m, "");
         m.files.write("/proc/cmdline", "quiet intel_iommu=on iommu=pt\n");
       },
       pass, "/proc/cmdline: quiet intel_iommu=on iommu=pt", ""},
      {id, "an old kernel, told nothing",
       [](Machine& m) {
         with_iommu_groups(m, "");
         m.files.write("/proc/cmdline", "quiet intel_iommu=on\n");
       },
       skipped, "/proc/cmdline", ""},
      {id, "none",
       [](Machine& m) {
         healthy(m);
         m.files.directory("/sys/class/iommu");
       },
       pass, "iommu_group: not there", ""},
      {id, "not in the copy", healthy, skipped, "/sys/class/iommu: not there", ""},
      {id, "no GPU and no NIC", without_devices, skipped, "", ""},
  };
}

void with_nic_control(Machine& m, std::uint16_t control, std::size_t size = 256) {
  m.node = healthy_node();
  for (const char* address : nic_address)
    m.files.write(doctor::config_path(function_at(m.node, address).address),
                  config_bytes(size, good_control, 0));
  m.files.write(doctor::config_path(function_at(m.node, nic_address[0]).address),
                config_bytes(size, control, 0));
}

Scenarios controls() {
  const std::string ordering = "relaxed-ordering";
  const std::string request = "pcie-max-read-request";
  auto no_rdma = [](Machine& m) { m.node = node_without_rdma(); };
  auto not_root = [](Machine& m) { with_nic_control(m, good_control, 64); };
  return {
      {ordering, "on", [](Machine& m) { with_nic_control(m, good_control); }, pass,
       "/config: PCIe device control is 0x2936", ""},
      {ordering, "off on one NIC", [](Machine& m) { with_nic_control(m, 0x2926); }, warning,
       "0000:14:00.0/config: PCIe device control is 0x2926",
       "for d in 0000:14:00.0; do setpci -s $d CAP_EXP+8.w=0010:0010"},
      {ordering, "only root may read", not_root, skipped, "config: only 64 bytes",
       "sudo shmemctl gather"},
      {ordering, "no RDMA", no_rdma, skipped, "", ""},
      {request, "512 bytes", [](Machine& m) { with_nic_control(m, good_control); }, pass,
       "0000:14:00.0 512", ""},
      {request, "128 bytes on one NIC", [](Machine& m) { with_nic_control(m, 0x0936); }, warning,
       "0000:14:00.0 128", "for d in 0000:14:00.0; do setpci -s $d CAP_EXP+8.w=5000:7000"},
      {request, "only root may read", not_root, skipped, "config: only 64 bytes",
       "sudo shmemctl gather"},
      {request, "a virtual RDMA device",
       [](Machine& m) {
         healthy(m);
         for (Nic& nic : m.node.nics)
           nic.pci = -1;
       },
       skipped, "", ""},
      {request, "no RDMA", no_rdma, skipped, "", ""},
  };
}

} // namespace

Scenarios pcie_scenarios() {
  Scenarios all;
  for (const Scenarios& part : {widths(), speeds(), redirects(), translations(), controls()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace shmemctl
