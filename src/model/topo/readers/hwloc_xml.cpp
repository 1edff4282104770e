// Reads hwloc XML into a Node.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/model/topo/node.h"
#include "src/model/topo/readers/hwloc_tree.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/readers/xml.h"

namespace shmemctl {

namespace {

Node read_lstopo(const XmlElement& topology, const std::string& subject) {
  hwloc::Tree tree = hwloc::read_tree(topology, subject);
  hwloc::add_gpus(tree);
  hwloc::add_nics(tree);
  const std::size_t devices = tree.node.gpus.size() + tree.node.nics.size();
  if (devices > topo_limits::max_devices)
    throw input_error(
        subject, topology.position(),
        fmt::format("{} GPUs and NICs exceed the limit of {}", devices, topo_limits::max_devices),
        "pass the topology of one machine");
  hwloc::add_gpu_links(tree, topology);
  normalize(tree.node);
  // The driver's own number is kept only if it differs.
  for (Gpu& gpu : tree.node.gpus)
    if (gpu.driver_index && *gpu.driver_index == gpu.index)
      gpu.driver_index = unknown<int>("the same as its index here");
  return std::move(tree.node);
}

} // namespace

Node read_hwloc_xml(const std::string& text, const std::string& subject) {
  const XmlElement topology = parse_xml(text, subject);
  if (topology.name != "topology")
    throw input_error(subject, topology.position(),
                      "the root element is <" + printable(topology.name, 40) + ">, not <topology>",
                      "pass XML as lstopo writes it: lstopo topology.xml");
  std::optional<Node> dump = read_hwloc_dump(topology, subject);
  Node node = dump ? std::move(*dump) : read_lstopo(topology, subject);
  node.format = "hwloc-xml";
  normalize(node);
  return node;
}

} // namespace shmemctl

namespace shmemctl::hwloc {

namespace {

/// Backends that give a GPU one OS device each, the best source of names first.
constexpr const char* backends[] = {"NVML", "RSMI", "CUDA", "LevelZero", "OpenCL"};

/// hwloc 1.x gives some devices no subtype; their names show the type ("nvml0", "rsmi2", "cuda1").
std::string backend_of(const OsDevice& device) {
  if (!device.backend.empty())
    return device.backend;
  for (const char* backend : backends)
    if (starts_with(device.name, lower(backend)))
      return backend;
  return "";
}

/// The number at the end of a device's name: 3 for "nvml3".
std::optional<int> number_of(const OsDevice& device) {
  std::size_t at = device.name.size();
  while (at > 0 && device.name[at - 1] >= '0' && device.name[at - 1] <= '9')
    --at;
  const auto number = parse_integer(device.name.substr(at));
  return number && *number >= 0 && *number < 1'000'000 ? std::optional<int>(*number) : std::nullopt;
}

/// OS devices of a GPU, those of the best backend first.
std::vector<const OsDevice*> by_backend(const std::vector<OsDevice>& devices) {
  std::vector<const OsDevice*> sorted;
  for (const char* backend : backends)
    for (const OsDevice& device : devices)
      if (device.gpu && backend_of(device) == backend)
        sorted.push_back(&device);
  return sorted;
}

Fact<std::string> first_info(const std::vector<const OsDevice*>& devices,
                             std::initializer_list<const char*> keys, const std::string& missing) {
  for (const char* key : keys)
    for (const OsDevice* device : devices)
      if (const std::string value = device->info(key);
          value.find_first_not_of("0-") != std::string::npos) // a driver without one says zero
        return known(value,
                     fmt::format("line {}: {} of {}", device->element->line, key, device->name));
  return unknown<std::string>(missing);
}

void describe(Gpu& gpu, const std::vector<const OsDevice*>& devices) {
  gpu.name = first_info(devices, {"GPUModel"}, "no OS device of the GPU names it");
  gpu.uuid =
      first_info(devices, {"NVIDIAUUID", "AMDUUID", "LevelZeroUUID"}, "hwloc's XML has no UUID");
  gpu.numa_affinity = unknown<std::string>("hwloc's XML has no list of NUMA nodes of GPUs");
  gpu.memory_numa = unknown<int>("hwloc's XML does not join GPUs to memory nodes");
  gpu.cpus = unknown<std::string>("hwloc's XML has no CPU affinity of GPUs");
  gpu.driver_index = unknown<int>("hwloc's XML has no driver's number of the GPU");
  if (!devices.empty() && backend_of(*devices.front()) != "OpenCL")
    if (const auto number = number_of(*devices.front()))
      gpu.driver_index = known(*number, devices.front()->name);
}

bool is_gpu(const PciDevice& device) {
  return device.class_code && device.vendor && pci_ids::is_gpu(*device.class_code, *device.vendor);
}

bool is_nvswitch(const PciFunction& function) {
  const PciDevice& device = function.device;
  return function.subtype == "NVSwitch" ||
         (device.class_code && device.vendor &&
          pci_ids::is_nvswitch(*device.class_code, *device.vendor));
}

void add_gpu(Tree& tree, const PciFunction& function) {
  const std::vector<const OsDevice*> devices = by_backend(function.os_devices);
  Gpu gpu;
  gpu.pci = pci_entry(tree, function);
  gpu.vendor = pci_ids::gpu_vendor(*function.device.vendor);
  describe(gpu, devices);
  if (!gpu.name && !function.name.empty())
    gpu.name = known(function.name, "PCIDevice of " + to_string(function.device.address));
  gpu.numa = function.device.numa;
  const auto partitions = std::count_if(devices.begin(), devices.end(), [](const OsDevice* device) {
    return backend_of(*device) == "RSMI";
  });
  if (partitions > 1)
    tree.node.notes.push_back(
        fmt::format("{} is {} devices of its driver; it counts as one GPU here",
                    to_string(function.device.address), partitions));
  tree.node.gpus.push_back(std::move(gpu));
}

/// GPUs of a document without PCI objects: one per OS device of the best backend in it.
void add_loose_gpus(Tree& tree) {
  const std::vector<const OsDevice*> devices = by_backend(tree.loose);
  if (devices.empty() || backend_of(*devices.front()) == "OpenCL")
    return;
  const std::string backend = backend_of(*devices.front());
  for (const OsDevice* device : devices) {
    if (backend_of(*device) != backend)
      continue;
    Gpu gpu;
    gpu.vendor = backend == "RSMI" ? "amd" : backend == "LevelZero" ? "intel" : "nvidia";
    describe(gpu, {device});
    gpu.numa = device->numa;
    tree.node.gpus.push_back(std::move(gpu));
  }
}

} // namespace

void add_gpus(Tree& tree) {
  for (const PciFunction& function : tree.functions) {
    if (is_nvswitch(function))
      ++tree.node.nvswitches;
    else if (is_gpu(function.device))
      add_gpu(tree, function);
  }
  if (tree.node.gpus.empty())
    add_loose_gpus(tree);
}

namespace {

constexpr std::size_t max_objects = std::size_t{2} * topo_limits::max_devices;

constexpr std::size_t max_matrix_bytes = std::size_t{8} << 20;

/// A matrix between objects, each named "OSDev:802" or "PCIDev:449".
struct Matrix {
  std::string name;
  std::vector<std::string> objects;
  std::vector<long long> values; ///< MB/s, row by row
};

/// Several children with the same name hold pieces of one list. A list longer than any machine's is
/// cut, and is then rejected because of its size.
std::vector<std::string> values_of(const XmlElement& element, const std::string& child_name) {
  std::vector<std::string> words;
  std::size_t size = 0;
  for (const XmlElement& child : element.children)
    if (child.name == child_name && (size += child.text.size()) <= max_matrix_bytes)
      for (std::string& word : split_blanks(child.text))
        words.push_back(std::move(word));
  return words;
}

std::optional<Matrix> parse_matrix(const XmlElement& element) {
  Matrix matrix;
  matrix.name = element.get("name");
  const std::string type = element.get("type");
  for (const std::string& word : values_of(element, "indexes"))
    matrix.objects.push_back(word.find(':') == std::string::npos ? type + ":" + word : word);
  for (const std::string& word : values_of(element, "u64values")) {
    const auto value = parse_integer(word);
    if (!value || *value < 0)
      return std::nullopt;
    matrix.values.push_back(*value);
  }
  const std::size_t count = matrix.objects.size();
  if (count > max_objects || matrix.values.size() != count * count)
    return std::nullopt;
  return matrix;
}

/// What an object in a matrix is.
struct End {
  LinkTarget kind = LinkTarget::unknown;
  int gpu = -1;
  std::optional<PciAddress> address;
};

std::map<std::string, End> ends(const Tree& tree) {
  std::map<std::string, End> found;
  for (const PciFunction& function : tree.functions) {
    End end;
    end.address = function.device.address;
    for (std::size_t i = 0; i < tree.node.gpus.size(); ++i) {
      const int entry = tree.node.gpus[i].pci;
      if (entry >= 0 && tree.node.pci[static_cast<std::size_t>(entry)].address == *end.address) {
        end.gpu = static_cast<int>(i);
        end.kind = LinkTarget::gpu;
      }
    }
    if (function.subtype == "NVSwitch" ||
        (function.device.class_code && function.device.vendor &&
         pci_ids::is_nvswitch(*function.device.class_code, *function.device.vendor)))
      end.kind = LinkTarget::nvswitch;
    found["PCIDev:" + function.gp_index] = end;
    if (end.kind == LinkTarget::gpu)
      for (const OsDevice& device : function.os_devices)
        found["OSDev:" + device.gp_index] = end;
  }
  return found;
}

/// MB/s of one NVLink, one direction, as hwloc counts it: 20 GB/s on P100 (NVLink 1), 25 GB/s on
/// Volta, Ampere and Hopper (NVLink 2 to 4). The upper byte of the PCI device id is the chip.
std::optional<long long> nvlink_MBps(const Fact<std::uint16_t>& device) {
  if (!device)
    return std::nullopt;
  switch (*device >> 8) {
  case 0x15:
    return 20000;
  case 0x1d:
  case 0x20:
  case 0x22:
  case 0x23:
    return 25000;
  default:
    return std::nullopt;
  }
}

/// Adds the links in a row of the matrix to the GPU. Returns false, and adds none, if the number of
/// links to one object is unknown.
bool add_row(Tree& tree, const Matrix& matrix, std::size_t row,
             const std::map<std::string, End>& to, int gpu_index) {
  Gpu& gpu = tree.node.gpus[static_cast<std::size_t>(gpu_index)];
  const auto one = nvlink_MBps(tree.node.pci[static_cast<std::size_t>(gpu.pci)].device);
  std::vector<GpuLink> links;
  for (std::size_t column = 0; column < matrix.objects.size(); ++column) {
    const long long value = matrix.values[row * matrix.objects.size() + column];
    if (column == row || value == 0)
      continue;
    if (!one || value % *one != 0 || value / *one > 100)
      return false;
    GpuLink link;
    link.count = static_cast<int>(value / *one);
    link.bandwidth_GBps = known(static_cast<double>(*one) / 1000.0, matrix.name);
    const auto end = to.find(matrix.objects[column]);
    if (starts_with(matrix.objects[column], "Package:")) {
      link.target = LinkTarget::cpu;
    } else if (end != to.end()) {
      link.target = end->second.kind;
      link.target_address = end->second.address;
    }
    links.push_back(link);
  }
  gpu.links.insert(gpu.links.end(), links.begin(), links.end());
  return true;
}

void add_nvlinks(Tree& tree, const Matrix& matrix, const std::map<std::string, End>& to) {
  int skipped = 0;
  for (std::size_t row = 0; row < matrix.objects.size(); ++row) {
    const auto end = to.find(matrix.objects[row]);
    if (end == to.end() || end->second.gpu < 0)
      continue;
    skipped += add_row(tree, matrix, row, to, end->second.gpu) ? 0 : 1;
  }
  if (skipped > 0)
    tree.node.notes.push_back(fmt::format(
        "the NVLinks of {} GPUs are left out: the bandwidth of one is not known", skipped));
}

} // namespace

void add_gpu_links(Tree& tree, const XmlElement& topology) {
  bool nvlink = false;
  for (const XmlElement& child : topology.children) {
    if (!starts_with(child.name, "distances2"))
      continue;
    const std::string name = child.get("name");
    if (name == "NVLinkBandwidth" && !nvlink) {
      nvlink = true;
      if (const auto matrix = parse_matrix(child))
        add_nvlinks(tree, *matrix, ends(tree));
      else
        tree.node.notes.push_back("the NVLinkBandwidth matrix is malformed and left out");
    } else if (name == "XGMIBandwidth") {
      tree.node.notes.push_back("xGMI links are left out: hwloc's XGMIBandwidth is the same number "
                                "for any number of links");
    }
  }
}

namespace {

constexpr int max_ports = 16;
constexpr std::size_t max_gids = 4096;

template <class T>
Fact<T> not_recorded(const char* what) {
  return unknown<T>(std::string("hwloc's XML does not report ") + what);
}

Nic nic_with(const std::string& name) {
  Nic nic;
  nic.name = name;
  nic.driver = not_recorded<std::string>("the driver");
  nic.firmware = not_recorded<std::string>("the firmware");
  nic.node_guid = not_recorded<std::string>("the node GUID");
  nic.data_direct = not_recorded<PciAddress>("about data direct");
  return nic;
}

/// The network device of the port, among those on the same PCI function.
const OsDevice* netdev_of(const std::vector<const OsDevice*>& netdevs, int port, bool only_port) {
  const OsDevice* found = nullptr;
  for (const OsDevice* netdev : netdevs) {
    const std::string number = netdev->info("Port");
    const bool matches = number.empty() ? only_port : number == std::to_string(port);
    if (!matches)
      continue;
    if (found != nullptr)
      return nullptr; // two network devices claim the port
    found = netdev;
  }
  return found;
}

/// IP over InfiniBand has 20-octet addresses, Ethernet 6.
Fact<LinkLayer> link_layer_of(const OsDevice* netdev) {
  const std::string address = netdev == nullptr ? "" : netdev->info("Address");
  const std::size_t octets = address.empty() ? 0 : split(address, ':').size();
  const std::string origin = "the address of " + (netdev == nullptr ? "" : netdev->name);
  if (octets == 20)
    return known(LinkLayer::infiniband, origin);
  if (octets == 6)
    return known(LinkLayer::ethernet, origin);
  return not_recorded<LinkLayer>("the link layer");
}

/// Port1State holds the number of the state (IBTA): 1 down, 2 init, 3 armed, 4 active.
Fact<PortState> state_of(const OsDevice& device, const std::string& prefix) {
  const std::string text = device.info(prefix + "State");
  const auto number = parse_integer(text.substr(0, text.find(':')));
  if (!number || *number < 1 || *number > 4)
    return unknown<PortState>(text.empty() ? "hwloc's XML does not report the port's state"
                                           : "the state is " + text);
  return known(static_cast<PortState>(*number - 1), prefix + "State of " + device.name);
}

std::vector<Gid> gids_of(const OsDevice& device, const std::string& prefix) {
  std::vector<Gid> gids;
  for (const XmlElement& child : device.element->children) {
    const std::string key = child.get("name");
    if (child.name != "info" || !starts_with(key, prefix + "GID"))
      continue;
    const auto index = parse_integer(key.substr(prefix.size() + 3));
    if (!index || *index < 0 || *index > 65535 || gids.size() >= max_gids)
      continue;
    gids.push_back({static_cast<int>(*index), child.get("value"),
                    not_recorded<std::string>("the type of a GID"),
                    not_recorded<std::string>("the network device of a GID")});
  }
  std::stable_sort(gids.begin(), gids.end(),
                   [](const Gid& a, const Gid& b) { return a.index < b.index; });
  return gids;
}

std::vector<NicPort> ports_of(const OsDevice& device, const std::vector<const OsDevice*>& netdevs) {
  std::vector<int> numbers;
  for (int number = 1; number <= max_ports; ++number)
    if (!device.info(fmt::format("Port{}State", number)).empty() ||
        !device.info(fmt::format("Port{}LID", number)).empty())
      numbers.push_back(number);
  std::vector<NicPort> ports;
  for (const int number : numbers) {
    const std::string prefix = fmt::format("Port{}", number);
    NicPort port;
    port.number = number;
    port.state = state_of(device, prefix);
    const OsDevice* netdev = netdev_of(netdevs, number, numbers.size() == 1);
    port.netdev = netdev != nullptr
                      ? known(netdev->name, "on the same PCI function")
                      : unknown<std::string>("no single network device on the PCI function");
    port.link_layer = link_layer_of(netdev);
    port.rate_Gbps = not_recorded<double>("the port's rate");
    port.active_mtu_bytes = not_recorded<int>("the port's MTU");
    const std::string lid_text = device.info(prefix + "LID");
    const auto lid = parse_integer(lid_text, starts_with(lid_text, "0x") ? 16 : 10);
    port.lid = lid && *lid >= 0 && *lid <= 0x7fffffff
                   ? known(static_cast<int>(*lid), prefix + "LID of " + device.name)
                   : not_recorded<int>("the port's LID");
    port.gids = gids_of(device, prefix);
    ports.push_back(std::move(port));
  }
  return ports;
}

class NicBuilder {
public:
  explicit NicBuilder(Tree& tree) : tree_(tree) {}

  void on_function(const PciFunction& function) {
    const std::size_t before = rdma_.size() + others_.size();
    add(function.os_devices, &function);
    if (rdma_.size() + others_.size() == before && is_network(function.device))
      without_os_device(function);
  }

  void loose() { add(tree_.loose, nullptr); }

  void finish() {
    std::stable_sort(rdma_.begin(), rdma_.end(),
                     [](const Nic& a, const Nic& b) { return natural_less(a.name, b.name); });
    name_the_unnamed();
    for (auto* group : {&rdma_, &unnamed_, &others_})
      for (Nic& nic : *group)
        tree_.node.nics.push_back(std::move(nic));
    if (left_out_ > 0)
      tree_.node.remarks.push_back(
          fmt::format("{} without a device of the operating system {} left out",
                      counted(left_out_, "virtual function"), left_out_ == 1 ? "is" : "are"));
    if (repeated_ > 0)
      tree_.node.notes.push_back(fmt::format("{} with a name seen before {} left out",
                                             counted(repeated_, "network device"),
                                             repeated_ == 1 ? "is" : "are"));
  }

private:
  static bool is_network(const PciDevice& device) {
    return device.class_code && pci_ids::is_network(*device.class_code);
  }

  bool fresh(const std::string& name) {
    if (!name.empty() && names_.insert(name).second)
      return true;
    ++repeated_;
    return false;
  }

  void place(Nic& nic, const PciFunction* function, const OsDevice& device) {
    nic.numa = function != nullptr ? function->device.numa : device.numa;
    if (function != nullptr)
      nic.pci = pci_entry(tree_, *function);
    else
      nic.virtual_device = true;
  }

  void add(const std::vector<OsDevice>& devices, const PciFunction* function) {
    std::vector<const OsDevice*> netdevs;
    for (const OsDevice& device : devices)
      if (device.network && !device.openfabrics)
        netdevs.push_back(&device);
    bool rdma = false;
    for (const OsDevice& device : devices) {
      if (!device.openfabrics || !fresh(device.name))
        continue;
      Nic nic = nic_with(device.name);
      nic.rdma = known(true, fmt::format("line {}: an OpenFabrics device", device.element->line));
      place(nic, function, device);
      if (const std::string guid = device.info("NodeGUID"); !guid.empty())
        nic.node_guid = known(guid, "NodeGUID");
      nic.ports = ports_of(device, function != nullptr ? netdevs : std::vector<const OsDevice*>{});
      rdma_.push_back(std::move(nic));
      rdma = true;
    }
    // A network device beside an RDMA device of the same function is its port, not another NIC.
    for (const OsDevice* netdev : netdevs) {
      if ((rdma && function != nullptr) || !fresh(netdev->name))
        continue;
      Nic nic = nic_with(netdev->name);
      nic.rdma = known(false, "no OpenFabrics device on its PCI function");
      place(nic, function, *netdev);
      others_.push_back(std::move(nic));
    }
  }

  /// A network function without a driver, or whose driver hwloc does not know.
  void without_os_device(const PciFunction& function) {
    const bool virtual_function = std::any_of(
        tree_.functions.begin(), tree_.functions.end(), [&function](const PciFunction& other) {
          const PciAddress& a = function.device.address;
          const PciAddress& b = other.device.address;
          const bool same_device = a.domain == b.domain && a.bus == b.bus && a.device == b.device;
          // Virtual functions from the eighth on have other device numbers on the same bus.
          const bool same_slot = a.domain == b.domain && a.bus == b.bus && function.below_bridge &&
                                 function.device.vendor.value == other.device.vendor.value;
          return (same_device || same_slot) && !other.os_devices.empty();
        });
    if (virtual_function) {
      ++left_out_;
      return;
    }
    Nic nic = nic_with("");
    nic.unnamed = true;
    nic.rdma = unknown<bool>("no device of the operating system on this PCI function");
    nic.numa = function.device.numa;
    nic.pci = pci_entry(tree_, function);
    unnamed_.push_back(std::move(nic));
  }

  void name_the_unnamed() {
    int number = 0;
    for (Nic& nic : unnamed_) {
      do
        nic.name = fmt::format("nic{}", number++);
      while (!names_.insert(nic.name).second);
    }
  }

  Tree& tree_;
  std::vector<Nic> rdma_;    ///< known to be RDMA devices
  std::vector<Nic> unnamed_; ///< not known to lack RDMA
  std::vector<Nic> others_;
  std::set<std::string> names_;
  std::size_t left_out_ = 0;
  std::size_t repeated_ = 0;
};

} // namespace

void add_nics(Tree& tree) {
  NicBuilder builder(tree);
  for (const PciFunction& function : tree.functions)
    builder.on_function(function);
  builder.loose();
  builder.finish();
}

} // namespace shmemctl::hwloc
