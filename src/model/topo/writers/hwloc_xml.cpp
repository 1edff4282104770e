#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "src/base/input.h"
#include "src/base/units.h"
#include "src/base/xml_text.h"
#include "src/model/topo/cpus.h"
#include "src/model/topo/node_fields.h"
#include "src/model/topo/readers/hwloc_tree.h"
#include "src/model/topo/writers/writer.h"

namespace shmemctl {

namespace {

/// Trees that are deeper are written flat, because the reader limits nesting; the infos hold the
/// structure.
constexpr int max_depth = max_nesting / 2;

/// A CPU NUMA node with the CPUs that hwloc will see. hwloc refuses CPUs that two nodes claim, so
/// those are given to the first; the infos keep the model's data.
struct NumaPart {
  const NumaNode* numa = nullptr;
  CpuSet cpus;
};

class Writer {
public:
  explicit Writer(const Node& node) : node_(node) {}

  std::string document() {
    find_parts();
    children();
    out_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
           "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n";
    machine();
    out_ += "</topology>\n";
    return std::move(out_);
  }

private:
  // ---- lines -------------------------------------------------------------------------------

  void line(const std::string& text) {
    out_.append(static_cast<std::size_t>(indent_) * 2, ' ');
    out_ += text + "\n";
  }
  void open(const std::string& type, const std::string& attributes) {
    line(fmt::format("<object type=\"{}\" gp_index=\"{}\"{}>", type, ++gp_index_, attributes));
    ++indent_;
  }
  void close() {
    --indent_;
    line("</object>");
  }
  void info(const std::string& name, const std::string& value) {
    line(fmt::format("<info name=\"{}\" value=\"{}\"/>", xml_escape(name), xml_escape(value)));
  }
  static std::string attribute(const char* name, const std::string& value) {
    return fmt::format(" {}=\"{}\"", name, xml_escape(value));
  }

  // ---- processors --------------------------------------------------------------------------

  void find_parts() {
    CpuSet taken;
    std::set<int> indices;
    for (const NumaNode& numa : node_.numa_nodes) {
      const auto cpus = numa.cpus ? parse_cpulist(*numa.cpus) : std::nullopt;
      if (numa.kind != NumaKind::cpu || !cpus || numa.os_index < 0 || numa.os_index >= max_cpus)
        continue;
      NumaPart part{&numa, {}};
      for (const int cpu : cpus->cpus())
        if (!taken.contains(cpu))
          part.cpus.add(cpu);
      taken.add(*cpus);
      if (!part.cpus.empty() && indices.insert(numa.os_index).second)
        parts_.push_back(std::move(part));
    }
    // hwloc wants objects in the order of their first CPU.
    std::sort(parts_.begin(), parts_.end(),
              [](const NumaPart& a, const NumaPart& b) { return a.cpus.first() < b.cpus.first(); });
    if (parts_.empty()) // hwloc requires a processor and memory
      parts_.push_back({nullptr, {0}});
  }

  static int index_of(const NumaPart& part) {
    return part.numa == nullptr ? 0 : part.numa->os_index;
  }

  static std::string sets(const CpuSet& cpus, const CpuSet& nodes) {
    const std::string cpu_text = format_hwloc_bitmap(cpus);
    const std::string node_text = format_hwloc_bitmap(nodes);
    return attribute("cpuset", cpu_text) + attribute("complete_cpuset", cpu_text) +
           attribute("nodeset", node_text) + attribute("complete_nodeset", node_text);
  }

  template <class Chosen>
  std::string sets_of(Chosen chosen) const {
    CpuSet cpus;
    CpuSet nodes;
    for (const NumaPart& part : parts_)
      if (chosen(part)) {
        cpus.add(part.cpus);
        nodes.add(index_of(part));
      }
    return sets(cpus, nodes);
  }

  const Package* package_of(const NumaPart& part) const {
    if (part.numa == nullptr || !part.numa->package)
      return nullptr;
    for (const Package& package : node_.packages)
      if (package.os_index == *part.numa->package && package.os_index >= 0)
        return &package;
    return nullptr;
  }

  void machine() {
    const std::string all = sets_of([](const NumaPart&) { return true; });
    ++indent_;
    open("Machine", " os_index=\"0\"" + all + attribute("allowed_cpuset", all_cpus()) +
                        attribute("allowed_nodeset", all_nodes()));
    if (!node_.hostname.empty())
      info("HostName", node_.hostname);
    for (const auto& [key, field] : fields_of(node_))
      info(hwloc_info_prefix + key, field.text);
    std::set<const Package*> done;
    for (const NumaPart& part : parts_) {
      const Package* package = package_of(part);
      if (package == nullptr)
        group(part);
      else if (done.insert(package).second)
        whole_package(*package);
    }
    host_bridges_at(nullptr);
    for (const int entry : without_bridge_)
      pci(entry, 1);
    devices_without_pci();
    close();
    --indent_;
  }

  std::string all_cpus() const {
    CpuSet cpus;
    for (const NumaPart& part : parts_)
      cpus.add(part.cpus);
    return format_hwloc_bitmap(cpus);
  }
  std::string all_nodes() const {
    CpuSet nodes;
    for (const NumaPart& part : parts_)
      nodes.add(index_of(part));
    return format_hwloc_bitmap(nodes);
  }

  void whole_package(const Package& package) {
    open("Package",
         attribute("os_index", std::to_string(package.os_index)) +
             sets_of([&](const NumaPart& part) { return package_of(part) == &package; }));
    if (package.model)
      info("CPUModel", *package.model);
    for (const NumaPart& part : parts_)
      if (package_of(part) == &package)
        group(part);
    close();
  }

  void group(const NumaPart& part) {
    const std::string own = sets(part.cpus, {index_of(part)});
    open("Group", own + " kind=\"1001\" subkind=\"0\"");
    const bool memory = part.numa != nullptr && part.numa->memory_bytes;
    open("NUMANode",
         attribute("os_index", std::to_string(index_of(part))) + own +
             (memory ? attribute("local_memory", std::to_string(*part.numa->memory_bytes)) : ""));
    close();
    for (const int cpu : part.cpus.cpus()) {
      open("PU", attribute("os_index", std::to_string(cpu)) + sets({cpu}, {index_of(part)}));
      close();
    }
    if (part.numa != nullptr)
      host_bridges_at(part.numa);
    close();
  }

  // ---- PCI ---------------------------------------------------------------------------------

  /// hwloc 2 has 16 bits for a PCI domain.
  static bool fits(std::uint32_t domain) { return domain <= 0xffff; }

  const NumaNode* numa_of(const HostBridge& bridge) const {
    for (const NumaPart& part : parts_)
      if (part.numa != nullptr && bridge.numa && part.numa->os_index == *bridge.numa)
        return part.numa;
    return nullptr;
  }

  void children() {
    below_.resize(node_.pci.size());
    below_host_.resize(node_.host_bridges.size());
    for (std::size_t i = 0; i < node_.pci.size(); ++i) {
      const PciDevice& device = node_.pci[i];
      const int entry = static_cast<int>(i);
      const auto host = static_cast<std::size_t>(device.host_bridge);
      if (!fits(device.address.domain))
        continue; // hwloc cannot represent it
      if (device.parent >= 0 &&
          fits(node_.pci[static_cast<std::size_t>(device.parent)].address.domain))
        below_[static_cast<std::size_t>(device.parent)].push_back(entry);
      else if (device.host_bridge >= 0 && fits(node_.host_bridges[host].domain))
        below_host_[host].push_back(entry);
      else
        without_bridge_.push_back(entry);
    }
  }

  void host_bridges_at(const NumaNode* numa) {
    for (std::size_t i = 0; i < node_.host_bridges.size(); ++i) {
      const HostBridge& bridge = node_.host_bridges[i];
      if (numa_of(bridge) != numa || below_host_[i].empty())
        continue;
      open("Bridge", fmt::format(" bridge_type=\"0-1\" depth=\"0\""
                                 " bridge_pci=\"{:04x}:[{:02x}-{:02x}]\"",
                                 bridge.domain, bridge.bus, last_bus(below_host_[i], bridge.bus)));
      for (const int entry : below_host_[i])
        pci(entry, 1);
      close();
    }
  }

  int last_bus(const std::vector<int>& entries, int from) const {
    int last = from;
    for (const int entry : entries)
      last = std::max<int>(last, node_.pci[static_cast<std::size_t>(entry)].address.bus);
    return last;
  }

  std::string pci_attributes(const PciDevice& device) const {
    auto or_zero = [](const auto& fact) -> unsigned { return fact ? *fact : 0U; };
    const bool link = device.link.speed_GTps && device.link.width;
    return fmt::format(
        " pci_busid=\"{}\" pci_type=\"{:04x} [{:04x}:{:04x}] [{:04x}:{:04x}] 00\""
        " pci_link_speed=\"{:.6f}\"",
        to_string(device.address), or_zero(device.class_code) >> 8 & 0xffff, or_zero(device.vendor),
        or_zero(device.device), or_zero(device.subsystem_vendor), or_zero(device.subsystem_device),
        link ? pcie_bandwidth_GBps(*device.link.speed_GTps, *device.link.width) : 0.0);
  }

  void pci(int entry, int depth) {
    const PciDevice& device = node_.pci[static_cast<std::size_t>(entry)];
    const std::vector<int>& below = below_[static_cast<std::size_t>(entry)];
    if (device.kind == PciKind::endpoint) {
      open("PCIDev", pci_attributes(device));
    } else {
      int first = 255;
      for (const int child : below)
        first = std::min<int>(first, node_.pci[static_cast<std::size_t>(child)].address.bus);
      if (below.empty())
        first = device.address.bus;
      open("Bridge", fmt::format(" bridge_type=\"1-1\" depth=\"{}\""
                                 " bridge_pci=\"{:04x}:[{:02x}-{:02x}]\"",
                                 depth, device.address.domain, first, last_bus(below, first)) +
                         pci_attributes(device));
    }
    os_devices(entry);
    if (depth >= max_depth)
      close();
    for (const int child : below)
      pci(child, std::min(depth + 1, max_depth));
    if (depth < max_depth)
      close();
  }

  // ---- OS devices --------------------------------------------------------------------------

  void os_devices(int entry) {
    for (const Gpu& gpu : node_.gpus)
      if (gpu.pci == entry)
        os_device(gpu);
    for (const Nic& nic : node_.nics)
      if (nic.pci == entry)
        os_device(nic);
  }

  bool placed(int entry) const {
    return entry >= 0 && fits(node_.pci[static_cast<std::size_t>(entry)].address.domain);
  }

  void devices_without_pci() {
    for (const Gpu& gpu : node_.gpus)
      if (!placed(gpu.pci))
        os_device(gpu);
    for (const Nic& nic : node_.nics)
      if (!placed(nic.pci))
        os_device(nic);
  }

  void os_device(const Gpu& gpu) {
    const bool amd = gpu.vendor == "amd";
    const char* backend = amd ? "RSMI" : gpu.vendor == "intel" ? "LevelZero" : "NVML";
    const char* stem = amd ? "rsmi" : gpu.vendor == "intel" ? "ze" : "nvml";
    open("OSDev", attribute("name", stem + std::to_string(gpu.driver_index ? *gpu.driver_index
                                                                           : gpu.index)) +
                      attribute("subtype", backend) + " osdev_type=\"1\"");
    info("Backend", backend);
    if (gpu.name)
      info("GPUModel", *gpu.name);
    if (gpu.uuid)
      info(amd ? "AMDUUID" : gpu.vendor == "intel" ? "LevelZeroUUID" : "NVIDIAUUID", *gpu.uuid);
    close();
  }

  /// A NIC without a name has no OS device that could be named here.
  void os_device(const Nic& nic) {
    if (nic.unnamed)
      return;
    const bool rdma = !nic.rdma || *nic.rdma;
    open("OSDev", attribute("name", nic.name) + (rdma ? " osdev_type=\"3\"" : " osdev_type=\"2\""));
    if (nic.node_guid)
      info("NodeGUID", *nic.node_guid);
    for (const NicPort& port : nic.ports) {
      const std::string prefix = fmt::format("Port{}", port.number);
      if (port.state)
        info(prefix + "State", std::to_string(static_cast<int>(*port.state) + 1));
      if (port.lid)
        info(prefix + "LID", fmt::format("0x{:x}", *port.lid));
      for (const Gid& gid : port.gids)
        info(prefix + fmt::format("GID{}", gid.index), gid.value);
    }
    close();
    for (const NicPort& port : nic.ports)
      if (rdma && port.netdev && netdevs_.insert(*port.netdev).second) {
        open("OSDev", attribute("name", *port.netdev) + " osdev_type=\"2\"");
        info("Port", std::to_string(port.number));
        close();
      }
  }

  const Node& node_;
  std::string out_;
  int indent_ = 0;
  int gp_index_ = 0;
  std::vector<NumaPart> parts_;
  std::vector<std::vector<int>> below_;      ///< per PCI entry
  std::vector<std::vector<int>> below_host_; ///< per host bridge
  std::vector<int> without_bridge_;
  std::set<std::string> netdevs_;
};

} // namespace

std::string write_hwloc_xml(const Node& node) {
  return Writer(node).document();
}

} // namespace shmemctl
