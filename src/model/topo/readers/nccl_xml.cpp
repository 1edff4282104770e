// Reads NCCL topology XML into a Node.
#include "src/model/topo/readers/nccl_xml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/model/topo/cpus.h"
#include "src/model/topo/node.h"
#include "src/model/topo/node_fields.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/readers/xml.h"

namespace shmemctl::nccl {

namespace {

int count_of(const XmlElement& element, const std::string& subject) {
  const std::optional<long long> count = parse_integer(element.get("count"));
  if (!count || *count < 0 || *count >= 1000)
    throw bad_element(subject, element,
                      "count of <" + element.name + "> is \"" +
                          printable(element.get("count"), 40) + "\", not an integer from 0 to 999");
  return static_cast<int>(*count);
}

/// NCCL's class codes: 0x0680 is an NVSwitch, 0x03 and 0x12 a GPU, 0x0600 a CPU, and so are
/// 0x068001 and 0x0601 (POWER).
LinkTarget target_of(const XmlElement& element, const std::string& subject) {
  const Fact<std::uint32_t> target =
      hexadecimal<std::uint32_t>(subject, element, "tclass", 0xffffff);
  if (!target)
    return LinkTarget::unknown;
  const std::uint32_t base = *target >> 16;
  const std::uint32_t kind = *target >> 8;
  if (base == 0x03 || base == 0x12)
    return LinkTarget::gpu;
  if (*target == 0x068001 || kind == 0x0600 || kind == 0x0601)
    return LinkTarget::cpu;
  return kind == 0x0680 ? LinkTarget::nvswitch : LinkTarget::unknown;
}

GpuLink nvlink_of(const XmlElement& element, const std::string& subject) {
  GpuLink link;
  link.kind = element.name == "xgmi" ? GpuLinkKind::xgmi : GpuLinkKind::nvlink;
  link.count = count_of(element, subject);
  if (link.count == 0)
    return link;
  link.bandwidth_GBps = unknown<double>(silent);
  link.target = target_of(element, subject);
  // A virtual machine does not see its NVSwitches: NCCL writes this in place of their address, and
  // hand-written files omit it.
  const std::string* const target = element.find("target");
  if (target == nullptr || starts_with(*target, "fffffff:ff:ff"))
    return link;
  link.target_address = parse_pci_address(*target);
  if (!link.target_address)
    throw bad_element(subject, element,
                      "target " + printable(*target, 40) + " is not a PCI address");
  return link;
}

/// `bw` is in MB/s per link.
GpuLink c2c_of(const XmlElement& element, const std::string& subject) {
  GpuLink link;
  link.kind = GpuLinkKind::c2c;
  link.target = LinkTarget::cpu;
  link.count = count_of(element, subject);
  const std::optional<double> bandwidth = parse_number(element.get("bw"));
  link.bandwidth_GBps = bandwidth && *bandwidth > 0
                            ? known(*bandwidth / 1000, line_of(element) + ", bw")
                            : unknown<double>(silent);
  return link;
}

} // namespace

int read_gpu(const XmlElement& element, const std::string& subject, Gpu& gpu,
             std::set<PciAddress>& nvswitches) {
  int without_end = 0;
  if (const std::optional<long long> dev = parse_integer(element.get("dev"));
      dev && *dev >= 0 && *dev < 65536)
    gpu.driver_index = known(static_cast<int>(*dev), line_of(element) + ", dev");
  if (gpu.vendor.empty() && element.find("gcn") != nullptr)
    gpu.vendor = "amd";
  for (const XmlElement& child : element.children) {
    if (child.name != "nvlink" && child.name != "xgmi" && child.name != "c2c")
      continue;
    GpuLink link = child.name == "c2c" ? c2c_of(child, subject) : nvlink_of(child, subject);
    if (link.target == LinkTarget::nvswitch && link.target_address)
      nvswitches.insert(*link.target_address);
    const bool to_peer = link.target == LinkTarget::gpu || link.target == LinkTarget::unknown;
    without_end += link.count > 0 && to_peer && !link.target_address ? 1 : 0;
    if (link.count > 0)
      gpu.links.push_back(std::move(link));
  }
  if (gpu.vendor.empty() && !gpu.links.empty())
    gpu.vendor = gpu.links.front().kind == GpuLinkKind::xgmi ? "amd" : "nvidia";
  return without_end;
}

namespace {

/// systemd's, the kernel's and container tools' names of interfaces.
bool is_interface_name(const std::string& name) {
  static constexpr std::array<std::string_view, 17> stems = {
      "en",  "eth", "br-", "virbr", "veth", "cali", "tunl",  "lxc",   "docker",
      "cni", "tap", "tun", "vxlan", "wl",   "bond", "flann", "podman"};
  return name == "lo" || std::any_of(stems.begin(), stems.end(), [&name](std::string_view stem) {
           return starts_with(name, stem);
         });
}

/// Names that drivers and rdma-core give to RDMA devices.
bool is_rdma_name(const std::string& name) {
  static constexpr std::array<std::string_view, 11> stems = {
      "mlx4_", "mlx5_", "rdmap", "roce", "bnxt_re", "irdma", "efa_", "hfi1_", "cxi", "iw", "qedr"};
  return std::any_of(stems.begin(), stems.end(),
                     [&name](std::string_view stem) { return starts_with(name, stem); });
}

std::optional<std::uint64_t> guid_of(const XmlElement& net) {
  std::string text = net.get("guid");
  if (starts_with(text, "0x") || starts_with(text, "0X"))
    text.erase(0, 2);
  std::uint64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const bool whole = status == std::errc() && end == text.data() + text.size();
  return whole ? std::optional<std::uint64_t>(value) : std::nullopt;
}

/// Mbit/s to Gbit/s. Plugins have reported kbit/s here: impossible rates are rejected. The speed of
/// merged devices is their sum.
Fact<double> rate_of(const XmlElement& net, std::size_t merged) {
  constexpr double fastest_Gbps = 10000;
  const std::optional<double> speed = parse_number(net.get("speed"));
  if (!speed || *speed <= 0)
    return unknown<double>(silent);
  if (*speed / 1000 > fastest_Gbps)
    return unknown<double>("the speed " + printable(net.get("speed"), 24) +
                           " Mbit/s is more than any port has");
  const auto devices = static_cast<double>(merged);
  return known(*speed / 1000 / devices,
               line_of(net) + ", speed" +
                   (merged > 1 ? " of " + std::to_string(merged) + " devices" : ""));
}

/// NCCL adds the number of the device among those of its card to the port's own number
/// (`port` = port + position), so the second device's port 1 reads 2.
int port_number(const XmlElement& net, int position) {
  const long long written = parse_integer(net.get("port")).value_or(1);
  const long long number = written > position ? written - position : written;
  return number >= 1 && number <= 255 ? static_cast<int>(number) : 1;
}

NicPort port_of(const XmlElement& net, const Nic& nic, int position, std::size_t merged) {
  NicPort port;
  port.number = port_number(net, position);
  port.state = unknown<PortState>(silent);
  port.link_layer = link_layer_from_name(nic.name);
  port.rate_Gbps = rate_of(net, merged);
  port.lid = unknown<int>(silent);
  port.active_mtu_bytes = unknown<int>(silent);
  port.netdev = nic.rdma && !*nic.rdma ? known(nic.name, line_of(net) + ", name")
                                       : unknown<std::string>(silent);
  return port;
}

Nic blank_nic() {
  Nic nic;
  nic.rdma = unknown<bool>(silent);
  nic.driver = unknown<std::string>(silent);
  nic.numa = unknown<int>(silent);
  nic.firmware = unknown<std::string>(silent);
  // The guid of a <net> is the system image GUID, which all functions of a card share.
  nic.node_guid = unknown<std::string>(silent);
  nic.data_direct = unknown<PciAddress>(silent);
  return nic;
}

/// One of NCCL's names in a <nic>.
struct Net {
  int position = 0;        ///< position among the names of the <nic>
  std::size_t first = 0;   ///< its first device in the list
  std::size_t devices = 0; ///< devices that the name stands for
};

std::optional<int> dev_of(const XmlElement& net) {
  const std::optional<long long> dev = parse_integer(net.get("dev"));
  return dev && *dev >= 0 && *dev < 65536 ? std::optional<int>(static_cast<int>(*dev))
                                          : std::nullopt;
}

/// Appends the devices that a <net> of a new name stands for.
/// @return how many
std::size_t add_devices(const XmlElement& net, bool on_pci, std::vector<NetDevice>& to) {
  const std::string name = net.get("name");
  const Fact<bool> rdma = rdma_of_net(net);
  // A network interface may have any name.
  const bool interface = rdma && !*rdma;
  const VerbsNames verbs = interface ? VerbsNames{{name}, false} : verbs_names(name);
  for (const std::string& device_name : verbs.names) {
    NetDevice device;
    device.nic = blank_nic();
    device.nic.name = device_name;
    device.nic.unnamed = device_name.empty();
    device.nic.rdma = rdma;
    device.nic.virtual_device = !on_pci;
    device.dev = dev_of(net);
    device.data_direct = verbs.data_direct && on_pci;
    device.merged = verbs.names.size() > 1;
    to.push_back(std::move(device));
  }
  return verbs.names.size();
}

} // namespace

Fact<bool> rdma_of_net(const XmlElement& net) {
  const std::string name = net.get("name");
  const std::string origin = line_of(net);
  if (is_interface_name(name))
    return known(false, origin + ", a network interface's name");
  if (is_rdma_name(name))
    return known(true, origin + ", an RDMA device's name");
  const std::optional<std::uint64_t> guid = guid_of(net);
  const std::optional<long long> port = parse_integer(net.get("port"));
  if (!guid || !port)
    return unknown<bool>("neither the name nor a GUID shows it");
  // NCCL's socket transport writes port 0 and its own count of interfaces as GUID.
  constexpr std::uint64_t max_interfaces = 0xffff;
  if (*guid <= max_interfaces && *port == 0)
    return known(false, origin + ", port 0 without a GUID");
  if (*guid > max_interfaces && *port >= 1)
    return known(true, origin + ", a port with a GUID");
  return unknown<bool>("neither the name nor the GUID shows it");
}

VerbsNames verbs_names(const std::string& nccl_name) {
  static constexpr std::string_view data_direct = "_dma";
  constexpr std::ptrdiff_t max_merged = 16; // NCCL merges four at most
  if (std::count(nccl_name.begin(), nccl_name.end(), '+') >= max_merged)
    return {{nccl_name}, false};
  VerbsNames result;
  for (std::string part : split(nccl_name, '+')) {
    const bool direct = part.size() > data_direct.size() && ends_with(part, data_direct);
    if (direct)
      part.resize(part.size() - data_direct.size());
    result.data_direct = result.data_direct || direct;
    const bool is_new =
        std::find(result.names.begin(), result.names.end(), part) == result.names.end();
    if (!part.empty() && is_new)
      result.names.push_back(std::move(part));
  }
  if (result.names.empty())
    result.names.push_back(nccl_name);
  return result;
}

std::vector<NetDevice> devices_of(const XmlElement& nic, bool on_pci) {
  std::vector<NetDevice> found;
  std::map<std::string, Net> nets; ///< by NCCL's name
  int position = 0;
  for (const XmlElement& net : nic.children) {
    if (net.name != "net")
      continue;
    const std::string name = net.get("name");
    auto known_net = name.empty() ? nets.end() : nets.find(name);
    if (known_net == nets.end()) {
      const std::size_t first = found.size();
      const Net added{position++, first, add_devices(net, on_pci, found)};
      known_net = nets.insert_or_assign(name, added).first;
    }
    if (net.find("port") == nullptr && net.find("speed") == nullptr)
      continue;
    const Net& at = known_net->second;
    for (std::size_t i = 0; i < at.devices; ++i) {
      Nic& device = found[at.first + i].nic;
      NicPort port = port_of(net, device, at.position, at.devices);
      const auto taken = [&port](const NicPort& other) { return other.number == port.number; };
      if (std::none_of(device.ports.begin(), device.ports.end(), taken))
        device.ports.push_back(std::move(port));
    }
  }
  return found;
}

Nic nic_of_class(std::uint32_t class_code, const Fact<std::uint16_t>& vendor,
                 const Fact<std::uint16_t>& device, const std::string& origin) {
  constexpr std::uint32_t infiniband = 0x0207;
  Nic nic = blank_nic();
  nic.unnamed = true;
  const bool efa = vendor && *vendor == pci_ids::amazon && device && *device >> 8 == 0xef;
  if (class_code >> 8 == infiniband)
    nic.rdma = known(true, origin + ", PCI class InfiniBand");
  else if (efa)
    nic.rdma = known(true, origin + ", PCI id of EFA");
  else
    nic.rdma = unknown<bool>("known by its PCI class only");
  return nic;
}

namespace {

bool has_child(const XmlElement& element, const char* name) {
  return std::any_of(element.children.begin(), element.children.end(),
                     [name](const XmlElement& child) { return child.name == name; });
}

/// What a <cpu> says about everything below it.
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
  /// Items of one kind that were not used as the file states them.
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
                    "PCI functions without a class were left out: they may be GPUs or NICs");
    foreign_.into(node_.notes, "elements that NCCL does not have there were left out");
    endless_.into(node_.notes,
                  "NVLinks were left out of the distances: the file does not say to which GPU");
    merged_.into(node_.remarks, "NICs that NCCL has merged are shown at the place of the first, "
                                "each with its share of their total speed");
    direct_.into(node_.remarks, "NICs with a name in _dma are shown at the place of their "
                                "data-direct function: the file does not say where the HCA "
                                "itself is");
    if (repeated_dev_)
      node_.remarks.emplace_back("the dev numbers of <net> are missing or not unique: RDMA "
                                 "devices are listed in the order of their names");
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

  /// NCCL groups by NUMA node. The bus numbers of host bridges are not in the file, so the host
  /// bridges are numbered here.
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
    // Hand-written files fill the ids of non-existent switches with zeros or ones.
    if (device.vendor && (*device.vendor == 0 || *device.vendor == 0xffff))
      device.vendor = device.device = device.subsystem_vendor = device.subsystem_device =
          unknown<std::uint16_t>("the file has an invented vendor id");
    device.numa = context.numa;
    device.link = link_of(pci);
    return device;
  }

  /// NCCL writes the speed that both device and port support (their max_link_speed), not the
  /// current one.
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
    constexpr std::size_t max_functions = 16384;
    if (node_.pci.size() >= max_functions)
      throw bad_element(subject_, pci,
                        "more than " + std::to_string(max_functions) + " PCI functions");
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
    // Without a vendor, any display or accelerator counts as a GPU: such files list the devices
    // that NCCL is to use.
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

  /// Several <gpu> of one function are its partitions, which are separate devices for CUDA.
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
    constexpr std::size_t max_nets = 4096;
    if (element.children.size() + devices_.size() > max_nets)
      throw bad_element(subject_, element,
                        "more than " + std::to_string(max_nets) + " network devices");
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

  /// Gives labels to NICs without a name.
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

  /// Whether NCCL's numbers order the RDMA devices: each has one, and no two nets share one (except
  /// the devices of a merged net).
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

  /// The order in which the verbs library enumerates devices: NCCL numbers devices in it. Without
  /// numbers, the order of the names is assumed.
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
  std::vector<NetDevice> devices_; ///< devices of all <nic> elements, until they are in order
  Tally other_hosts_, classless_, foreign_, endless_, merged_, direct_;
  bool repeated_dev_ = false;
};

} // namespace

Node node_of_system(const XmlElement& system, const std::string& subject) {
  return TreeReader(subject).read(system);
}

} // namespace shmemctl::nccl

namespace shmemctl {

namespace {

constexpr const char* dump_fix =
    "pass a topology file dumped by NCCL (set NCCL_TOPO_DUMP_FILE and run any NCCL job)";

void check_root(const XmlElement& root, const std::string& subject) {
  if (root.name == "graphs" || root.name == "graph")
    throw input_error(
        subject, root.position(),
        "this is an NCCL graph file (NCCL_GRAPH_DUMP_FILE), which holds channels and no topology",
        dump_fix);
  if (root.name != "system")
    throw input_error(subject, root.position(),
                      "the root element is <" + printable(root.name, 40) + ">, not <system>",
                      dump_fix);
  // NCCL puts everything below <cpu>: a root that contains only other elements is from another
  // tool.
  const auto has = [&root](const char* name) {
    return std::any_of(root.children.begin(), root.children.end(),
                       [name](const XmlElement& child) { return child.name == name; });
  };
  if (!root.children.empty() && !has("cpu") && !has("shmemctl"))
    throw input_error(subject, root.children.front().position(),
                      "<" + printable(root.children.front().name, 40) +
                          "> in <system> and no <cpu>: not a topology of NCCL",
                      dump_fix);
}

} // namespace

Node read_nccl_xml(const std::string& text, const std::string& subject) {
  const XmlElement root = parse_xml(text, subject);
  check_root(root, subject);
  Node node = nccl::node_of_system(root, subject);
  // NCCL writes version 1, AMD's RCCL 2; the content is the same.
  const std::string version = root.get("version");
  if (version != "1" && version != "2")
    node.notes.push_back("the XML's version is " +
                         (version.empty() ? "missing" : printable(version, 20)) + ", not 1");
  node = nccl::with_extras(node, root, subject);
  if (const std::string problem = shape_problem(node); !problem.empty())
    throw input_error(subject, root.position(), problem, dump_fix);
  return node;
}

} // namespace shmemctl
