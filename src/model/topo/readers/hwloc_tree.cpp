// hwloc's object tree, from its XML or from this machine.
#include "src/model/topo/readers/hwloc_tree.h"

#include <algorithm>
#include <fmt/format.h>
#include <hwloc.h>
#include <set>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/unique_handle.h"
#include "src/base/units.h"
#include "src/model/topo/cpus.h"
#include "src/model/topo/node.h"
#include "src/model/topo/node_fields.h"
#include "src/model/topo/readers/machine.h"

namespace shmemctl::hwloc {

namespace {

const char* const fix_of_hwloc_xml = "use XML written by lstopo: lstopo topology.xml";

enum class Dialect { v1, v2, v3 };

Dialect dialect_of(const XmlElement& topology) {
  const std::string* version = topology.find("version");
  if (version == nullptr)
    return Dialect::v1;
  return starts_with(*version, "2.") ? Dialect::v2 : Dialect::v3;
}

bool is_io(const std::string& type) {
  return type == "Bridge" || type == "PCIDev" || type == "OSDev" || type == "Misc";
}

/// The context of an I/O object.
struct Around {
  const XmlElement* locality = nullptr; ///< nearest object with CPUs
  int host_bridge = -1;
  int parent = -1;   ///< in node.pci
  int function = -1; ///< in functions
};

class Walk {
public:
  Walk(const XmlElement& topology, const std::string& subject)
      : subject_(subject), dialect_(dialect_of(topology)) {}

  Tree take() { return std::move(tree_); }

  void processors(const XmlElement& root) {
    collect(root);
    std::stable_sort(numa_.begin(), numa_.end(), [this](const auto* a, const auto* b) {
      return os_index(*a, 0) < os_index(*b, 0);
    });
    for (const XmlElement* package : packages_)
      add_package(*package);
    for (const XmlElement* numa : numa_)
      add_numa(*numa);
  }

  void devices(const XmlElement& object, Around around) {
    const std::string type = object.get("type");
    if (!is_io(type)) {
      if (object.find("cpuset") != nullptr && !(type == "NUMANode" && dialect_ != Dialect::v1))
        around.locality = &object;
    } else if (type == "Bridge") {
      bridge(object, around);
    } else if (type == "PCIDev") {
      function(object, around);
    } else if (type == "OSDev") {
      os_device(object, around);
    }
    for (const XmlElement& child : object.children)
      if (child.name == "object")
        devices(child, around);
  }

private:
  [[noreturn]] void fail(const XmlElement& at, const std::string& problem) const {
    throw input_error(subject_, at.position(), problem, fix_of_hwloc_xml);
  }

  static std::string origin(const XmlElement& at) { return fmt::format("line {}", at.line); }

  int os_index(const XmlElement& object, int otherwise) const {
    const std::string* text = object.find("os_index");
    if (text == nullptr)
      return otherwise;
    const auto index = parse_integer(*text);
    if (!index || *index < 0 || *index > 1'000'000)
      fail(object, "os_index is not an integer from 0 to 1000000");
    return static_cast<int>(*index);
  }

  CpuSet cpu_set(const XmlElement& object, const char* attribute) const {
    const std::string* text = object.find(attribute);
    if (text == nullptr || text->empty())
      return {};
    const auto cpus = parse_hwloc_bitmap(*text);
    if (!cpus)
      fail(object, fmt::format("{} is not a bitmap of at most {} bits", attribute, max_cpus));
    return *cpus;
  }

  void collect(const XmlElement& object) {
    const std::string type = object.get("type");
    if (type == "Package" || type == "Socket")
      packages_.push_back(&object);
    if (type == "NUMANode" || type == "Node")
      numa_.push_back(&object);
    if (packages_.size() > topo_limits::max_packages || numa_.size() > topo_limits::max_numa_nodes)
      fail(object, fmt::format("more than {} packages or {} NUMA nodes", topo_limits::max_packages,
                               topo_limits::max_numa_nodes));
    for (const XmlElement& child : object.children)
      if (child.name == "object")
        collect(child);
  }

  void add_package(const XmlElement& object) {
    Package package;
    package.os_index = os_index(object, static_cast<int>(tree_.node.packages.size()));
    const std::string* model = find_info(object, "CPUModel");
    package.model = model != nullptr ? known(*model, origin(object))
                                     : unknown<std::string>("hwloc's XML has no CPUModel");
    for (const int cpu : cpu_set(object, "cpuset").cpus())
      package_of_cpu_.emplace(cpu, package.os_index);
    tree_.node.packages.push_back(package);
  }

  void add_numa(const XmlElement& object) {
    NumaNode numa;
    numa.os_index = os_index(object, static_cast<int>(tree_.node.numa_nodes.size()));
    const CpuSet cpus = cpu_set(object, "cpuset");
    // hwloc gives memory without CPUs the nearby CPUs. A CPU has one NUMA node; if several claim
    // it, the one that Linux numbered first.
    const bool first = intersection(cpus, claimed_) != cpus;
    const std::string subtype = object.get("subtype");
    if (subtype == "GPUMemory" || find_info(object, "PCIBusID") != nullptr)
      numa.kind = NumaKind::gpu_memory;
    else if (!first || find_info(object, "DAXDevice") != nullptr)
      numa.kind = NumaKind::other_memory;
    numa.package = package_of(cpus);
    if (numa.kind == NumaKind::cpu) {
      numa.cpus = known(format_cpulist(cpus), origin(object));
      claimed_.add(cpus);
      for (const int cpu : cpus.cpus())
        numa_of_cpu_.emplace(cpu, numa.os_index);
      cpu_nodes_.insert(numa.os_index);
    } else {
      numa.cpus = unknown<std::string>("it has no CPUs of its own");
    }
    const auto memory = parse_integer(object.get("local_memory"));
    numa.memory_bytes = memory && *memory >= 0
                            ? known(static_cast<std::uint64_t>(*memory), origin(object))
                            : unknown<std::uint64_t>("hwloc's XML has no local_memory");
    tree_.node.numa_nodes.push_back(numa);
  }

  Fact<int> package_of(const CpuSet& cpus) const {
    std::set<int> found;
    for (const int cpu : cpus.cpus())
      if (const auto package = package_of_cpu_.find(cpu); package != package_of_cpu_.end())
        found.insert(package->second);
    if (found.size() == 1)
      return known(*found.begin(), "its CPUs");
    return unknown<int>(found.empty() ? "no package has its CPUs" : "its CPUs span packages");
  }

  struct Locality {
    Fact<int> numa;
    Fact<int> package;
  };

  const Locality& locality(const XmlElement* object) {
    const auto cached = localities_.find(object);
    if (cached != localities_.end())
      return cached->second;
    Locality found{unknown<int>("nothing with CPUs is around it"),
                   unknown<int>("nothing with CPUs is around it")};
    if (object != nullptr) {
      const CpuSet cpus = cpu_set(*object, "cpuset");
      std::set<int> nodes;
      for (const int cpu : cpus.cpus())
        if (const auto numa = numa_of_cpu_.find(cpu); numa != numa_of_cpu_.end())
          nodes.insert(numa->second);
      if (cpus.empty()) // disallowed CPUs are omitted; the set of nodes may help
        for (const int node : cpu_set(*object, "nodeset").cpus())
          if (cpu_nodes_.count(node) != 0)
            nodes.insert(node);
      const std::string where = object->get("type") + " at line " + std::to_string(object->line);
      if (nodes.size() == 1)
        found.numa = known(*nodes.begin(), "attached to " + where);
      else
        found.numa = unknown<int>(
            fmt::format("attached to {}, which spans {} NUMA nodes", where, nodes.size()));
      found.package = package_of(cpus);
    }
    return localities_.emplace(object, std::move(found)).first->second;
  }

  void bridge(const XmlElement& object, Around& around) {
    const std::string kind = object.get("bridge_type");
    if (starts_with(kind, "0-"))
      return host_bridge(object, around);
    if (!starts_with(kind, "1-"))
      fail(object, "a Bridge without a valid bridge_type");
    PciDevice device = pci_device(object, around);
    device.kind = PciKind::bridge;
    tree_.node.pci.push_back(device);
    if (tree_.node.pci.size() > topo_limits::max_pci_entries)
      fail(object, fmt::format("more than {} PCI functions", topo_limits::max_pci_entries));
    around.parent = static_cast<int>(tree_.node.pci.size()) - 1;
  }

  void host_bridge(const XmlElement& object, Around& around) {
    // "0000:[d0-d1]": the domain and the buses below.
    const std::string text = object.get("bridge_pci");
    const std::size_t open = text.find(":[");
    const auto domain = parse_integer(text.substr(0, open), 16);
    const auto bus =
        open == std::string::npos
            ? std::nullopt
            : parse_integer(text.substr(open + 2, text.find('-', open) - open - 2), 16);
    if (!domain || !bus || *domain < 0 || *domain > 0xffffffffLL || *bus < 0 || *bus > 0xff)
      fail(object, "a host bridge without a valid bridge_pci");
    HostBridge bridge;
    bridge.domain = static_cast<std::uint32_t>(*domain);
    bridge.bus = static_cast<std::uint8_t>(*bus);
    bridge.numa = locality(around.locality).numa;
    bridge.package = locality(around.locality).package;
    tree_.node.host_bridges.push_back(bridge);
    if (tree_.node.host_bridges.size() > topo_limits::max_host_bridges)
      fail(object, fmt::format("more than {} host bridges", topo_limits::max_host_bridges));
    around.host_bridge = static_cast<int>(tree_.node.host_bridges.size()) - 1;
    around.parent = -1;
  }

  PciDevice pci_device(const XmlElement& object, const Around& around) {
    PciDevice device;
    const auto address = parse_pci_address(object.get("pci_busid"));
    if (!address)
      fail(object, "a PCI object without a valid pci_busid");
    device.address = *address;
    device.parent = around.parent;
    device.host_bridge = around.host_bridge;
    device.numa = locality(around.locality).numa;
    pci_type(object, device);
    pci_link(object, device.link);
    return device;
  }

  /// "0302 [10de:2330] [10de:16c1] a1", and the programming interface after that since 3.x.
  void pci_type(const XmlElement& object, PciDevice& device) const {
    const std::vector<std::string> parts = split_blanks(object.get("pci_type"));
    auto pair = [](const std::string& text) -> std::optional<std::pair<long long, long long>> {
      if (text.size() != 11 || text[0] != '[' || text[5] != ':' || text[10] != ']')
        return std::nullopt;
      const auto left = parse_integer(text.substr(1, 4), 16);
      const auto right = parse_integer(text.substr(6, 4), 16);
      if (!left || !right || *left < 0 || *right < 0)
        return std::nullopt;
      return std::make_pair(*left, *right);
    };
    const auto base = parts.size() < 3 ? std::nullopt : parse_integer(parts[0], 16);
    const auto ids = parts.size() < 3 ? std::nullopt : pair(parts[1]);
    const auto subsystem = parts.size() < 3 ? std::nullopt : pair(parts[2]);
    if (!base || !ids || !subsystem || *base < 0 || *base > 0xffff)
      return ids_unknown(device, "no valid pci_type");
    if (*base == 0 && ids->first == 0 && ids->second == 0)
      return ids_unknown(device, "pci_type is all zero");
    const auto interface = parts.size() > 4 ? parse_integer(parts[4], 16) : std::nullopt;
    const auto low = interface && *interface >= 0 && *interface <= 0xff ? *interface : 0;
    const std::string from = origin(object);
    device.class_code = known(static_cast<std::uint32_t>(*base << 8 | low), from);
    device.vendor = known(static_cast<std::uint16_t>(ids->first), from);
    device.device = known(static_cast<std::uint16_t>(ids->second), from);
    device.subsystem_vendor = known(static_cast<std::uint16_t>(subsystem->first), from);
    device.subsystem_device = known(static_cast<std::uint16_t>(subsystem->second), from);
  }

  static void ids_unknown(PciDevice& device, const std::string& reason) {
    device.class_code = unknown<std::uint32_t>(reason);
    for (auto* id :
         {&device.vendor, &device.device, &device.subsystem_vendor, &device.subsystem_device})
      *id = unknown<std::uint16_t>(reason);
  }

  /// hwloc stores only the product of speed and width, in GB/s. If a single pair gives it, that is
  /// the link; otherwise the link stays unknown.
  void pci_link(const XmlElement& object, PcieLink& link) const {
    const auto bandwidth = parse_number(object.get("pci_link_speed"));
    std::string reason = "hwloc's XML does not report";
    std::vector<std::pair<double, int>> fits;
    if (bandwidth && *bandwidth > 0) {
      for (const double speed : {2.5, 5.0, 8.0, 16.0, 32.0, 64.0})
        for (const int width : {1, 2, 4, 8, 16}) {
          const double raw = pcie_bandwidth_GBps(speed, width);
          if (std::max(raw, *bandwidth) <= 1.002 * std::min(raw, *bandwidth))
            fits.emplace_back(speed, width);
        }
      reason = fmt::format("hwloc's XML has only the bandwidth, {} GB/s", *bandwidth);
    }
    link.speed_GTps = fits.size() == 1 ? known(fits[0].first, origin(object) + ": " + reason)
                                       : unknown<double>(reason);
    link.width = fits.size() == 1 ? known(fits[0].second, origin(object) + ": " + reason)
                                  : unknown<int>(reason);
    link.max_speed_GTps = unknown<double>("hwloc's XML does not report");
    link.max_width = unknown<int>("hwloc's XML does not report");
  }

  void function(const XmlElement& object, Around& around) {
    PciFunction function;
    function.device = pci_device(object, around);
    function.subtype = object.get("subtype");
    function.gp_index = object.get("gp_index");
    function.below_bridge = around.parent >= 0;
    if (const std::string* name = find_info(object, "PCIDevice"))
      function.name = *name;
    tree_.functions.push_back(std::move(function));
    if (tree_.functions.size() > topo_limits::max_pci_functions)
      fail(object, fmt::format("more than {} PCI functions", topo_limits::max_pci_functions));
    around.function = static_cast<int>(tree_.functions.size()) - 1;
  }

  void os_device(const XmlElement& object, const Around& around) {
    OsDevice device;
    device.element = &object;
    device.name = object.get("name");
    device.gp_index = object.get("gp_index");
    device.backend = object.get("subtype");
    for (const char* key : {"Backend", "CoProcType"})
      if (const std::string* value = find_info(object, key); value && device.backend.empty())
        device.backend = *value;
    device.numa = locality(around.locality).numa;
    const auto type = parse_integer(object.get("osdev_type"));
    if (!type || *type < 0 || *type > 0xffff)
      fail(object, "an OSDev without a valid osdev_type");
    if (dialect_ == Dialect::v3) {
      device.gpu = (*type & (4 | 8)) != 0;
      device.network = (*type & 16) != 0;
      device.openfabrics = (*type & 32) != 0;
    } else {
      device.gpu = *type == 1 || *type == 5;
      device.network = *type == 2;
      device.openfabrics = *type == 3;
    }
    if (++os_devices_ > topo_limits::max_os_devices)
      fail(object, fmt::format("more than {} OS devices", topo_limits::max_os_devices));
    if (around.function >= 0)
      tree_.functions[static_cast<std::size_t>(around.function)].os_devices.push_back(device);
    else
      tree_.loose.push_back(device);
  }

  std::string subject_;
  Dialect dialect_;
  Tree tree_;
  int os_devices_ = 0;
  std::vector<const XmlElement*> packages_;
  std::vector<const XmlElement*> numa_;
  std::map<int, int> package_of_cpu_;
  std::map<int, int> numa_of_cpu_;
  CpuSet claimed_; ///< CPUs that have a NUMA node
  std::set<int> cpu_nodes_;
  std::map<const XmlElement*, Locality> localities_;
};

} // namespace

std::string OsDevice::info(const std::string& key) const {
  const std::string* value = find_info(*element, key);
  return value == nullptr ? "" : *value;
}

const std::string* find_info(const XmlElement& element, const std::string& key) {
  for (const XmlElement& child : element.children)
    if (child.name == "info" && child.get("name") == key)
      return child.find("value");
  return nullptr;
}

Tree read_tree(const XmlElement& topology, const std::string& subject) {
  const auto root = std::find_if(topology.children.begin(), topology.children.end(),
                                 [](const XmlElement& child) { return child.name == "object"; });
  if (root == topology.children.end())
    throw input_error(subject, topology.position(), "the topology has no object", fix_of_hwloc_xml);
  Walk walk(topology, subject);
  walk.processors(*root);
  walk.devices(*root, {});
  Tree tree = walk.take();
  for (const XmlElement* at : {&topology, &*root})
    if (const std::string* name = find_info(*at, "HostName"))
      tree.node.hostname = *name;
  return tree;
}

int pci_entry(Tree& tree, const PciFunction& function) {
  const auto [entry, fresh] =
      tree.endpoints.emplace(function.device.address, static_cast<int>(tree.node.pci.size()));
  if (fresh)
    tree.node.pci.push_back(function.device);
  return entry->second;
}

} // namespace shmemctl::hwloc

namespace shmemctl {

std::optional<Node> read_hwloc_dump(const XmlElement& topology, const std::string& subject) {
  const std::string_view prefix = hwloc_info_prefix;
  NodeFields fields;
  for (const XmlElement& machine : topology.children)
    for (const XmlElement& element : machine.children) {
      const std::string name = element.name == "info" ? element.get("name") : "";
      if (starts_with(name, prefix))
        add_field(fields, name.substr(prefix.size()), element.get("value"), element.position());
    }
  if (fields.empty())
    return std::nullopt;
  return node_from_fields(fields, subject, topology.position());
}

namespace {

using Topology = CHandle<hwloc_topology, hwloc_topology_destroy>;

/// Reads only what is needed: no I/O, caches or cores, so that it is fast with hundreds of CPUs.
/// The x86 backend is excluded because it binds this thread to every CPU in turn; Linux has the
/// same data.
Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0)
    return nullptr;
  Topology topology(raw);
  hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_flags(
      raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
               HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
  return hwloc_topology_load(raw) == 0 ? std::move(topology) : nullptr;
}

/// hwloc returns -1 as unsigned if the system gives no number.
int os_index(const hwloc_obj& object) {
  return static_cast<int>(object.os_index == HWLOC_UNKNOWN_INDEX ? object.logical_index
                                                                 : object.os_index);
}

Package describe_package(hwloc_obj& object) {
  Package package;
  package.os_index = os_index(object);
  const char* model = hwloc_obj_get_info_by_name(&object, "CPUModel");
  package.model = model != nullptr ? known<std::string>(model, "hwloc: CPUModel")
                                   : unknown<std::string>("hwloc names no CPUModel");
  return package;
}

std::string cpulist_of(hwloc_const_cpuset_t bitmap) {
  CpuSet cpus;
  for (int cpu = hwloc_bitmap_first(bitmap); cpu >= 0 && cpu < max_cpus;
       cpu = hwloc_bitmap_next(bitmap, cpu))
    cpus.add(cpu);
  return format_cpulist(cpus);
}

NumaNode describe_numa(hwloc_topology_t topology, hwloc_obj& object) {
  NumaNode numa;
  numa.os_index = os_index(object);
  const bool has_cpus = hwloc_bitmap_iszero(object.cpuset) == 0;
  numa.kind = has_cpus ? NumaKind::cpu : NumaKind::other_memory;
  numa.cpus = known(cpulist_of(object.cpuset), "hwloc: cpuset");
  numa.memory_bytes =
      known<std::uint64_t>(object.attr->numanode.local_memory, "hwloc: local memory");
  const hwloc_obj* package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, &object);
  numa.package = package != nullptr ? known(os_index(*package), "hwloc: parent package")
                                    : unknown<int>("hwloc puts it in no single package");
  return numa;
}

/// A machine with one NUMA node may have it above its only package: it still belongs to that
/// package.
void settle_single_package(Node& node) {
  if (node.packages.size() != 1)
    return;
  for (NumaNode& numa : node.numa_nodes)
    if (!numa.package)
      numa.package = known(node.packages.front().os_index, "hwloc: the only package");
}

} // namespace

void read_cpus_hwloc(const Sysroot& sysroot, Node& node) {
  const Topology topology = load_topology();
  if (!topology) {
    node.notes.emplace_back("hwloc could not read this machine; its CPUs are read from sysfs");
    read_cpus_sysfs(sysroot, node);
    return;
  }
  hwloc_obj* package = nullptr;
  while ((package = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_PACKAGE, package)))
    node.packages.push_back(describe_package(*package));
  hwloc_obj* numa = nullptr;
  while ((numa = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE, numa)))
    node.numa_nodes.push_back(describe_numa(topology.get(), *numa));
  settle_single_package(node);
  add_memory_nodes(sysroot, node);
}

} // namespace shmemctl
