#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "src/base/text.h"
#include "src/topo/readers/hwloc_tree.h"

namespace shmemctl::hwloc {

namespace {

constexpr int max_ports = 16;
constexpr std::size_t max_gids = 4096;

template <class T>
Fact<T> not_told(const char* what) {
  return unknown<T>(std::string("hwloc's XML does not tell ") + what);
}

Nic nic_with(const std::string& name) {
  Nic nic;
  nic.name = name;
  nic.driver = not_told<std::string>("the driver");
  nic.firmware = not_told<std::string>("the firmware");
  nic.node_guid = not_told<std::string>("the node GUID");
  nic.data_direct = not_told<PciAddress>("about data direct");
  return nic;
}

/// The network device that is the port's, among those on the same PCI function.
const OsDevice* netdev_of(const std::vector<const OsDevice*>& netdevs, int port, bool only_port) {
  const OsDevice* found = nullptr;
  for (const OsDevice* netdev : netdevs) {
    const std::string number = netdev->info("Port");
    const bool matches = number.empty() ? only_port : number == std::to_string(port);
    if (!matches)
      continue;
    if (found != nullptr)
      return nullptr; // two claim it
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
  return not_told<LinkLayer>("the link layer");
}

/// Port1State holds the number of the state (IBTA): 1 down, 2 init, 3 armed, 4 active.
Fact<PortState> state_of(const OsDevice& device, const std::string& prefix) {
  const std::string text = device.info(prefix + "State");
  const auto number = parse_integer(text.substr(0, text.find(':')));
  if (!number || *number < 1 || *number > 4)
    return unknown<PortState>(text.empty() ? "hwloc's XML does not tell the port's state"
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
                    not_told<std::string>("the type of a GID"),
                    not_told<std::string>("the network device of a GID")});
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
    port.rate_Gbps = not_told<double>("the port's rate");
    port.active_mtu_bytes = not_told<int>("the port's MTU");
    const std::string lid_text = device.info(prefix + "LID");
    const auto lid = parse_integer(lid_text, starts_with(lid_text, "0x") ? 16 : 10);
    port.lid = lid && *lid >= 0 && *lid <= 0x7fffffff
                   ? known(static_cast<int>(*lid), prefix + "LID of " + device.name)
                   : not_told<int>("the port's LID");
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
      tree_.node.remarks.push_back(fmt::format(
          "{} virtual functions without a device of the operating system are left out", left_out_));
    if (repeated_ > 0)
      tree_.node.notes.push_back(
          fmt::format("{} network devices with a name seen before are left out", repeated_));
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

  /// A network function that no driver has claimed, or whose driver hwloc does not know.
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
  std::vector<Nic> unnamed_; ///< not known to be none
  std::vector<Nic> others_;
  std::set<std::string> names_;
  int left_out_ = 0;
  int repeated_ = 0;
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
