#include "src/topo/readers/nccl_tree.h"

#include <algorithm>
#include <set>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/topo/cpu_set.h"
#include "src/topo/readers/nccl_attributes.h"
#include "src/topo/readers/nccl_gpus.h"
#include "src/topo/readers/nccl_nets.h"

namespace shmemctl::nccl {

namespace {

bool has_child(const XmlElement& element, const char* name) {
  return std::any_of(element.children.begin(), element.children.end(),
                     [name](const XmlElement& child) { return child.name == name; });
}

/// What a <cpu> tells about everything below it.
struct CpuContext {
  int host_bridge = -1;
  Fact<int> numa;
  Fact<std::string> cpus;
};

class TreeReader {
public:
  explicit TreeReader(const std::string& subject) : subject_(subject) { node_.format = "nccl-xml"; }

  Node read(const XmlElement& system) {
    for (const XmlElement& child : system.children)
      if (child.name == "cpu" && is_of_this_host(child))
        read_cpu(child);
    if (other_hosts_ > 0)
      note("the <cpu> elements of other hosts were left out", other_hosts_, first_other_host_);
    if (classless_ > 0)
      note("PCI functions without a class were left out: nothing tells GPUs from NICs", classless_,
           first_classless_);
    name_nics();
    node_.nvswitches = static_cast<int>(nvswitches_.size());
    normalize(node_);
    for (Gpu& gpu : node_.gpus)
      if (gpu.driver_index && *gpu.driver_index == gpu.index)
        gpu.driver_index = unknown<int>("the same as the index");
    return std::move(node_);
  }

private:
  void note(const std::string& what, int count, const std::string& first) {
    node_.notes.push_back(what + " (" + std::to_string(count) + ", the first in " + first + ")");
  }

  /// One XML may hold several hosts of an NVLink domain.
  bool is_of_this_host(const XmlElement& cpu) {
    const std::string hash = cpu.get("host_hash");
    if (!host_hash_)
      host_hash_ = hash;
    if (hash == *host_hash_)
      return true;
    if (other_hosts_++ == 0)
      first_other_host_ = line_of(cpu);
    return false;
  }

  void read_cpu(const XmlElement& cpu) {
    CpuContext context;
    context.host_bridge = static_cast<int>(node_.host_bridges.size());
    const std::string numaid = cpu.get("numaid");
    const std::optional<long long> numa = parse_integer(numaid);
    if (!numaid.empty() && (!numa || *numa < -1 || *numa > 65535))
      throw bad_element(subject_, cpu, "numaid is " + printable(numaid, 40) + ", no NUMA node");
    context.numa = numa && *numa >= 0 ? known(static_cast<int>(*numa), line_of(cpu) + ", numaid")
                                      : unknown<int>(numa ? "numaid reads -1" : silent);
    context.cpus = cpus_of(cpu);
    add_host_bridge(context);
    add_numa_node(context);
    for (const XmlElement& child : cpu.children) {
      if (child.name == "pci")
        read_pci(child, -1, context);
      else if (child.name == "nic")
        read_virtual_nics(child);
    }
  }

  Fact<std::string> cpus_of(const XmlElement& cpu) const {
    const std::string* mask = cpu.find("affinity");
    if (mask == nullptr)
      return unknown<std::string>(silent);
    const std::optional<CpuSet> cpus = parse_cpumap(*mask);
    if (!cpus)
      throw bad_element(subject_, cpu, "affinity is " + printable(*mask, 60) + ", no CPU mask");
    return cpus->empty() ? unknown<std::string>("affinity is an empty mask")
                         : known(format_cpulist(*cpus), line_of(cpu) + ", affinity");
  }

  /// NCCL groups by NUMA node; bus numbers of host bridges are not in the file, so that they are
  /// counted up to keep them apart.
  void add_host_bridge(const CpuContext& context) {
    HostBridge bridge;
    bridge.domain = static_cast<std::uint32_t>(context.host_bridge / 256);
    bridge.bus = static_cast<std::uint8_t>(context.host_bridge % 256);
    bridge.numa = context.numa;
    bridge.package = unknown<int>(silent);
    bridge.exact = false;
    node_.host_bridges.push_back(std::move(bridge));
  }

  void add_numa_node(const CpuContext& context) {
    if (!context.numa || !numa_seen_.insert(*context.numa).second)
      return;
    NumaNode numa;
    numa.os_index = *context.numa;
    numa.package = unknown<int>(silent);
    numa.cpus = context.cpus;
    numa.memory_bytes = unknown<std::uint64_t>(silent);
    node_.numa_nodes.push_back(std::move(numa));
  }

  PciDevice device_of(const XmlElement& pci, const CpuContext& context) const {
    const std::string* busid = pci.find("busid");
    if (busid == nullptr)
      throw bad_element(subject_, pci, "<pci> without busid");
    const std::optional<PciAddress> address = parse_pci_address(*busid);
    if (!address)
      throw bad_element(subject_, pci, "busid " + printable(*busid, 40) + " is no PCI address");
    PciDevice device;
    device.address = *address;
    device.host_bridge = context.host_bridge;
    device.class_code = hexadecimal<std::uint32_t>(subject_, pci, "class", 0xffffff);
    device.vendor = hexadecimal<std::uint16_t>(subject_, pci, "vendor", 0xffff);
    device.device = hexadecimal<std::uint16_t>(subject_, pci, "device", 0xffff);
    device.subsystem_vendor = hexadecimal<std::uint16_t>(subject_, pci, "subsystem_vendor", 0xffff);
    device.subsystem_device = hexadecimal<std::uint16_t>(subject_, pci, "subsystem_device", 0xffff);
    // Files made by hand fill the ids of switches that do not exist with zeros or ones.
    if (device.vendor && (*device.vendor == 0 || *device.vendor == 0xffff))
      device.vendor = device.device = device.subsystem_vendor = device.subsystem_device =
          unknown<std::uint16_t>("the file has a made-up vendor id");
    device.numa = context.numa;
    device.link = link_of(pci);
    return device;
  }

  /// NCCL writes what device and port can both do (their max_link_speed), not what they do now.
  static PcieLink link_of(const XmlElement& pci) {
    PcieLink link;
    const std::optional<double> speed = parse_link_speed_GTps(pci.get("link_speed"));
    const std::optional<long long> width = parse_integer(pci.get("link_width"));
    link.speed_GTps = unknown<double>(silent);
    link.width = unknown<int>(silent);
    link.max_speed_GTps = speed && *speed > 0 ? known(*speed, line_of(pci) + ", link_speed")
                                              : unknown<double>(silent);
    link.max_width = width && *width > 0 && *width <= 64
                         ? known(static_cast<int>(*width), line_of(pci) + ", link_width")
                         : unknown<int>(silent);
    return link;
  }

  /// Depth is bounded by parse_xml().
  void read_pci(const XmlElement& pci, int parent, const CpuContext& context) {
    constexpr std::size_t most_functions = 16384;
    if (node_.pci.size() >= most_functions)
      throw bad_element(subject_, pci,
                        "more than " + std::to_string(most_functions) + " PCI functions");
    PciDevice device = device_of(pci, context);
    device.parent = parent;
    const bool bridge =
        has_child(pci, "pci") || (device.class_code && pci_ids::is_bridge(*device.class_code));
    if (bridge) {
      device.kind = PciKind::whole_switch;
      node_.pci.push_back(std::move(device));
      const int index = static_cast<int>(node_.pci.size()) - 1;
      add_functions(pci, index, context);
      for (const XmlElement& child : pci.children)
        if (child.name == "pci")
          read_pci(child, index, context);
      return;
    }
    if (device.class_code &&
        pci_ids::is_nvswitch(*device.class_code,
                             device.vendor ? *device.vendor : pci_ids::nvidia)) {
      nvswitches_.insert(device.address);
      return;
    }
    if (!is_gpu(pci, device) && !is_nic(pci, device)) {
      if (!device.class_code && classless_++ == 0)
        first_classless_ = line_of(pci);
      return;
    }
    if (!endpoints_.insert(device.address).second)
      throw bad_element(subject_, pci, "a second <pci> of " + to_string(device.address));
    node_.pci.push_back(std::move(device));
    add_functions(pci, static_cast<int>(node_.pci.size()) - 1, context);
  }

  static bool is_gpu(const XmlElement& pci, const PciDevice& device) {
    // Without a vendor any display or accelerator counts: such files list what NCCL shall use.
    return has_child(pci, "gpu") ||
           (device.class_code &&
            pci_ids::is_gpu(*device.class_code, device.vendor ? *device.vendor : pci_ids::nvidia));
  }
  static bool is_nic(const XmlElement& pci, const PciDevice& device) {
    return has_child(pci, "nic") || (device.class_code && pci_ids::is_network(*device.class_code));
  }

  void add_functions(const XmlElement& pci, int index, const CpuContext& context) {
    const PciDevice device = node_.pci[static_cast<std::size_t>(index)];
    if (is_gpu(pci, device))
      add_gpu(pci, index, context);
    if (is_nic(pci, device))
      add_nics(pci, index, context);
  }

  void add_gpu(const XmlElement& pci, int index, const CpuContext& context) {
    Gpu gpu;
    gpu.index = static_cast<int>(node_.gpus.size());
    gpu.pci = index;
    gpu.name = unknown<std::string>(silent);
    gpu.uuid = unknown<std::string>(silent);
    gpu.numa = context.numa;
    gpu.cpus = context.cpus;
    gpu.driver_index = unknown<int>(silent);
    const Fact<std::uint16_t> vendor = node_.pci[static_cast<std::size_t>(index)].vendor;
    gpu.vendor = vendor ? pci_ids::gpu_vendor(*vendor) : "";
    for (const XmlElement& child : pci.children)
      if (child.name == "gpu")
        read_gpu(child, subject_, gpu, nvswitches_);
    node_.gpus.push_back(std::move(gpu));
  }

  void add_nics(const XmlElement& pci, int index, const CpuContext& context) {
    std::vector<Nic> nics;
    for (const XmlElement& child : pci.children)
      if (child.name == "nic")
        for (Nic& nic : bounded_nics(child, true))
          nics.push_back(std::move(nic));
    const PciDevice& device = node_.pci[static_cast<std::size_t>(index)];
    if (nics.empty())
      nics.push_back(nic_of_class(device.class_code ? *device.class_code : 0, device.vendor,
                                  device.device, line_of(pci)));
    for (Nic& nic : nics) {
      nic.pci = index;
      nic.numa = context.numa;
      node_.nics.push_back(std::move(nic));
    }
  }

  std::vector<Nic> bounded_nics(const XmlElement& element, bool on_pci) const {
    constexpr std::size_t most_nets = 4096;
    if (element.children.size() + node_.nics.size() > most_nets)
      throw bad_element(subject_, element,
                        "more than " + std::to_string(most_nets) + " network devices");
    return nics_of(element, on_pci);
  }

  /// NCCL repeats interfaces without a PCI path below every CPU.
  void read_virtual_nics(const XmlElement& element) {
    for (Nic& nic : bounded_nics(element, false)) {
      if (!nic.name.empty() && !virtual_names_.insert(nic.name).second)
        continue;
      nic.numa = unknown<int>("it has no place in the PCI tree");
      node_.nics.push_back(std::move(nic));
    }
  }

  /// Names for those that have none, then the order in which libibverbs enumerates.
  void name_nics() {
    std::set<std::string> taken;
    std::set<std::string> made_up;
    for (const Nic& nic : node_.nics)
      taken.insert(nic.name);
    int number = 0;
    for (Nic& nic : node_.nics) {
      if (!nic.name.empty())
        continue;
      do
        nic.name = "nic" + std::to_string(number++);
      while (!taken.insert(nic.name).second);
      made_up.insert(nic.name);
    }
    auto group = [&made_up](const Nic& nic) {
      return nic.rdma && !*nic.rdma ? 2 : made_up.count(nic.name) != 0 ? 1 : 0;
    };
    std::stable_sort(node_.nics.begin(), node_.nics.end(),
                     [&group](const Nic& left, const Nic& right) {
                       if (group(left) != group(right))
                         return group(left) < group(right);
                       return group(left) == 0 && natural_less(left.name, right.name);
                     });
  }

  const std::string& subject_;
  Node node_;
  std::optional<std::string> host_hash_;
  std::set<int> numa_seen_;
  std::set<PciAddress> endpoints_;
  std::set<PciAddress> nvswitches_;
  std::set<std::string> virtual_names_;
  int other_hosts_ = 0;
  int classless_ = 0;
  std::string first_other_host_;
  std::string first_classless_;
};

} // namespace

Node node_of_system(const XmlElement& system, const std::string& subject) {
  return TreeReader(subject).read(system);
}

} // namespace shmemctl::nccl
