#include "src/topo/readers/nccl_tree.h"

#include <algorithm>
#include <map>
#include <set>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/topo/cpu_set.h"
#include "src/topo/limits.h"
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
    for (const XmlElement& child : system.children) {
      if (child.name == "cpu" && is_of_this_host(child))
        read_cpu(child);
      else if (child.name != "cpu" && child.name != "shmemctl") // what shmemctl itself adds
        foreign_.add("<" + printable(child.name, 40) + ">", child);
    }
    place_nics();
    order_nics();
    write_notes();
    node_.nvswitches = static_cast<int>(nvswitches_.size());
    normalize(node_);
    for (Gpu& gpu : node_.gpus)
      if (gpu.driver_index && *gpu.driver_index == gpu.index)
        gpu.driver_index = unknown<int>("the same as the index");
    return std::move(node_);
  }

private:
  /// Things of one kind that were not used as they stand.
  struct Tally {
    int count = 0;
    std::string first;
    void add(const std::string& what, const XmlElement& at) {
      if (count++ == 0)
        first = (what.empty() ? "" : what + " ") + "in " + line_of(at);
    }
    void into(std::vector<std::string>& notes, const std::string& text) const {
      if (count > 0)
        notes.push_back(text + " (" + std::to_string(count) + ", the first " + first + ")");
    }
  };

  void write_notes() {
    other_hosts_.into(node_.notes, "the <cpu> elements of other hosts were left out: a file with "
                                   "only those of one host shows that host");
    classless_.into(node_.notes,
                    "PCI functions without a class were left out: nothing tells GPUs from NICs");
    foreign_.into(node_.notes, "elements that NCCL does not have there were left out");
    endless_.into(node_.notes,
                  "NVLinks were left out of the distances: the file does not say to which GPU");
    merged_.into(node_.remarks, "NICs that NCCL has merged stand where the first of them is, each "
                                "with its share of their speed");
    direct_.into(node_.remarks, "NICs with a name in _dma stand where their data-direct function "
                                "is: the file does not say where the HCA itself is");
    if (repeated_dev_)
      node_.remarks.emplace_back("the dev numbers of <net> are not one for each device: RDMA "
                                 "devices stand in the order of their names");
  }

  /// One XML may hold several hosts of an NVLink domain.
  bool is_of_this_host(const XmlElement& cpu) {
    const std::string hash = cpu.get("host_hash");
    if (!host_hash_)
      host_hash_ = hash;
    if (hash == *host_hash_)
      return true;
    other_hosts_.add("", cpu);
    return false;
  }

  void read_cpu(const XmlElement& cpu) {
    CpuContext context;
    context.host_bridge = static_cast<int>(node_.host_bridges.size());
    const std::string numaid = cpu.get("numaid");
    const std::optional<long long> numa = parse_integer(numaid);
    if (!numaid.empty() && (!numa || *numa < -1 || *numa > 65535))
      throw bad_element(subject_, cpu, "numaid is " + printable(numaid, 40) + ", not a NUMA node");
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
      else
        foreign_.add("<" + printable(child.name, 40) + ">", child);
    }
  }

  Fact<std::string> cpus_of(const XmlElement& cpu) const {
    const std::string* mask = cpu.find("affinity");
    if (mask == nullptr)
      return unknown<std::string>(silent);
    const std::optional<CpuSet> cpus = parse_cpumap(*mask);
    if (!cpus)
      throw bad_element(subject_, cpu, "affinity is " + printable(*mask, 60) + ", not a CPU mask");
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
      throw bad_element(subject_, pci, "busid " + printable(*busid, 40) + " is not a PCI address");
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
    for (const XmlElement& child : pci.children)
      if (child.name != "pci" && child.name != "gpu" && child.name != "nic")
        foreign_.add("<" + printable(child.name, 40) + ">", child);
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
      if (!device.class_code)
        classless_.add("", pci);
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
      add_gpus(pci, index, context);
    if (is_nic(pci, device))
      add_nics(pci, index, context);
  }

  /// Several <gpu> of one function are its partitions, which are devices of their own to CUDA.
  void add_gpus(const XmlElement& pci, int index, const CpuContext& context) {
    bool any = false;
    for (const XmlElement& child : pci.children) {
      if (child.name != "gpu")
        continue;
      any = true;
      if (node_.gpus.size() >= static_cast<std::size_t>(topo_limits::max_devices))
        throw bad_element(subject_, child,
                          "more than " + std::to_string(topo_limits::max_devices) +
                              " GPUs and NICs");
      Gpu gpu = gpu_of(index, context);
      if (read_gpu(child, subject_, gpu, nvswitches_) > 0)
        endless_.add("", child);
      node_.gpus.push_back(std::move(gpu));
    }
    if (!any)
      node_.gpus.push_back(gpu_of(index, context));
  }

  Gpu gpu_of(int index, const CpuContext& context) const {
    Gpu gpu;
    gpu.index = static_cast<int>(node_.gpus.size());
    gpu.pci = index;
    gpu.name = unknown<std::string>(silent);
    gpu.uuid = unknown<std::string>(silent);
    gpu.numa = context.numa;
    gpu.numa_affinity = unknown<std::string>(silent);
    gpu.memory_numa = unknown<int>(silent);
    gpu.cpus = context.cpus;
    gpu.driver_index = unknown<int>(silent);
    const Fact<std::uint16_t> vendor = node_.pci[static_cast<std::size_t>(index)].vendor;
    gpu.vendor = vendor ? pci_ids::gpu_vendor(*vendor) : "";
    return gpu;
  }

  void add_nics(const XmlElement& pci, int index, const CpuContext& context) {
    std::vector<NetDevice> devices;
    for (const XmlElement& child : pci.children)
      if (child.name == "nic")
        for (NetDevice& device : bounded_devices(child, true))
          devices.push_back(std::move(device));
    const PciDevice& function = node_.pci[static_cast<std::size_t>(index)];
    if (devices.empty())
      devices.emplace_back().nic = nic_of_class(function.class_code ? *function.class_code : 0,
                                                function.vendor, function.device, line_of(pci));
    for (NetDevice& device : devices) {
      device.nic.pci = index;
      device.nic.numa = context.numa;
      if (device.data_direct)
        device.nic.data_direct = known(function.address, line_of(pci) + ", the name in _dma");
      if (device.merged)
        merged_.add(printable(device.nic.name, 60), pci);
      if (device.data_direct)
        direct_.add(printable(device.nic.name, 60), pci);
      devices_.push_back(std::move(device));
    }
  }

  std::vector<NetDevice> bounded_devices(const XmlElement& element, bool on_pci) {
    constexpr std::size_t most_nets = 4096;
    if (element.children.size() + devices_.size() > most_nets)
      throw bad_element(subject_, element,
                        "more than " + std::to_string(most_nets) + " network devices");
    for (const XmlElement& child : element.children)
      if (child.name != "net")
        foreign_.add("<" + printable(child.name, 40) + ">", child);
    return devices_of(element, on_pci);
  }

  /// NCCL repeats interfaces without a PCI path below every CPU.
  void read_virtual_nics(const XmlElement& element) {
    for (NetDevice& device : bounded_devices(element, false)) {
      if (!device.nic.name.empty() && !virtual_names_.insert(device.nic.name).second)
        continue;
      device.nic.numa = unknown<int>("it has no place in the PCI tree");
      devices_.push_back(std::move(device));
    }
  }

  /// An HCA that NCCL lists by its own function and by its data-direct one is one device.
  void place_nics() {
    std::map<std::string, std::size_t> own; ///< by name: devices at their own function
    for (std::size_t i = 0; i < devices_.size(); ++i)
      if (!devices_[i].nic.unnamed && !devices_[i].data_direct)
        own.emplace(devices_[i].nic.name, i);
    std::vector<NetDevice> kept;
    for (const NetDevice& device : devices_) {
      const auto twin = device.data_direct ? own.find(device.nic.name) : own.end();
      if (twin != own.end())
        devices_[twin->second].nic.data_direct = device.nic.data_direct;
    }
    for (NetDevice& device : devices_)
      if (!device.data_direct || own.count(device.nic.name) == 0)
        kept.push_back(std::move(device));
    devices_ = std::move(kept);
  }

  /// Labels for those that have no name.
  void label_nics() {
    std::set<std::string> taken;
    for (const NetDevice& device : devices_)
      taken.insert(device.nic.name);
    int number = 0;
    for (NetDevice& device : devices_) {
      if (!device.nic.unnamed)
        continue;
      do
        device.nic.name = "nic" + std::to_string(number++);
      while (!taken.insert(device.nic.name).second);
    }
  }

  /// RDMA devices with a name, then those without, then other interfaces.
  static int group_of(const NetDevice& device) {
    const Nic& nic = device.nic;
    return nic.rdma && !*nic.rdma ? 2 : nic.unnamed ? 1 : 0;
  }

  /// Whether NCCL's numbers order the RDMA devices: each has one, and no two nets share one (the
  /// devices of a merged net do).
  bool ordered_by_dev() {
    std::map<int, const NetDevice*> taken;
    bool any = false;
    bool usable = true;
    for (const NetDevice& device : devices_) {
      if (group_of(device) != 0)
        continue;
      any = any || device.dev;
      if (!device.dev) {
        usable = false;
        continue;
      }
      const auto [entry, is_new] = taken.emplace(*device.dev, &device);
      const bool same_net = !is_new && device.merged && entry->second->merged &&
                            entry->second->nic.pci == device.nic.pci;
      usable = usable && (is_new || same_net);
    }
    repeated_dev_ = any && !usable;
    return any && usable;
  }

  /// The order in which the verbs library enumerates: NCCL numbers devices in it. Without numbers
  /// it is taken to be that of the names.
  void order_nics() {
    label_nics();
    const bool by_dev = ordered_by_dev();
    std::stable_sort(
        devices_.begin(), devices_.end(), [by_dev](const NetDevice& left, const NetDevice& right) {
          const int group = group_of(left);
          if (group != group_of(right))
            return group < group_of(right);
          if (group != 0)
            return false;
          return by_dev ? *left.dev < *right.dev : natural_less(left.nic.name, right.nic.name);
        });
    for (NetDevice& device : devices_)
      node_.nics.push_back(std::move(device.nic));
  }

  const std::string& subject_;
  Node node_;
  std::optional<std::string> host_hash_;
  std::set<int> numa_seen_;
  std::set<PciAddress> endpoints_;
  std::set<PciAddress> nvswitches_;
  std::set<std::string> virtual_names_;
  std::vector<NetDevice> devices_; ///< of all <nic>, until they are in order
  Tally other_hosts_, classless_, foreign_, endless_, merged_, direct_;
  bool repeated_dev_ = false;
};

} // namespace

Node node_of_system(const XmlElement& system, const std::string& subject) {
  return TreeReader(subject).read(system);
}

} // namespace shmemctl::nccl
