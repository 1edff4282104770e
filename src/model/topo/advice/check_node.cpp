// Findings about the node itself, whatever the mapping: affinity, links, ports, the source of its
// data.
#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/model/topo/advice/advice.h"
#include "src/model/topo/advice/checks.h"
#include "src/model/topo/advice/env_fix.h"
#include "src/model/topo/advice/wording.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/mapping/ports.h"
#include "src/model/topo/node.h"

namespace shmemctl {

Findings check_node(const Node& node) {
  Findings all;
  for (auto check :
       {check_source, check_ports, check_pcie_links, check_affinity, check_nvlinks, check_rdma}) {
    Findings found = check(node);
    std::move(found.begin(), found.end(), std::back_inserter(all));
  }
  withhold_unknown_names(node, all);
  sort_findings(all);
  return all;
}

namespace {

constexpr int rank_below_one_switch = 1; // PXB or nearer
constexpr int rank_other_socket = 4;     // SYS

std::optional<int> nearer(std::optional<int> best, const Distance& distance) {
  if (!distance.path)
    return best;
  return std::min(best.value_or(rank_other_socket), distance_rank(distance));
}

/// Rank of the nearest of `nics` per GPU; empty if no distance is known.
std::vector<std::optional<int>> nearest_ranks(const Node& node, const std::vector<int>& nics) {
  std::vector<std::optional<int>> nearest(node.gpus.size());
  for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu)
    for (const int nic : nics)
      nearest[gpu] = nearer(nearest[gpu], gpu_nic_distance(node, static_cast<int>(gpu), nic));
  return nearest;
}

bool any_close(const std::vector<std::optional<int>>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [](const std::optional<int>& rank) {
    return rank && *rank <= rank_below_one_switch;
  });
}

std::vector<int> nics_of(const std::vector<NicUse>& ports) {
  std::vector<int> nics;
  for (const NicUse& use : ports)
    if (nics.empty() || nics.back() != use.nic)
      nics.push_back(use.nic);
  return nics;
}

/// The fabric's NICs and those whose ports are all down, which port-down reports.
std::vector<int> fabric_nics(const Node& node) {
  std::vector<int> nics = nics_of(fabric_ports(node));
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Nic& nic = node.nics[i];
    const bool down = !nic.ports.empty() &&
                      std::all_of(nic.ports.begin(), nic.ports.end(), [](const NicPort& port) {
                        return port.state && *port.state != PortState::active;
                      });
    if (down && !nic.virtual_device && (!nic.rdma || *nic.rdma))
      nics.push_back(static_cast<int>(i));
  }
  return nics;
}

Findings check_gpus_without_nic(const Node& node) {
  if (node.gpus.empty() || node.hidden_nics > 0)
    return {};
  std::vector<int> distant;
  std::vector<int> not_close;
  if (node.nics.empty()) {
    for (const Gpu& gpu : node.gpus)
      distant.push_back(gpu.index);
    // A matrix without a PCI tree is nvidia-smi's.
    if (node.recorded && node.pci.empty())
      return {{"gpu-without-nic", Severity::info, numbered("GPU", distant),
               "this text lists no NIC: the node has none, or only NICs that nvidia-smi does "
               "not list (EFA, Slingshot)",
               "run shmemctl topo on that host: it reads every NIC from the kernel"}};
    return {{"gpu-without-nic", Severity::warning, numbered("GPU", distant),
             fmt::format("{} cannot reach other nodes: no NIC is known", numbered("GPU", distant)),
             "install an RDMA NIC, or load its driver: modprobe mlx5_ib"}};
  }
  const std::vector<std::optional<int>> nearest = nearest_ranks(node, fabric_nics(node));
  const bool others_are_close = any_close(nearest);
  for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu) {
    const std::optional<int> rank = nearest[gpu];
    if (rank && *rank == rank_other_socket)
      distant.push_back(static_cast<int>(gpu));
    else if (rank && *rank > rank_below_one_switch && others_are_close)
      not_close.push_back(static_cast<int>(gpu));
  }
  Findings findings;
  if (!distant.empty())
    findings.push_back(
        {"gpu-without-nic", Severity::warning, numbered("GPU", distant),
         fmt::format("{} {} no usable NIC on the same NUMA node: all traffic to other nodes "
                     "crosses the sockets",
                     numbered("GPU", distant), distant.size() == 1 ? "has" : "have"),
         "move a NIC to a slot of that socket, or run PEs on the other GPUs only (--gpus)"});
  if (!not_close.empty())
    findings.push_back(
        {"gpu-without-nic", Severity::info, numbered("GPU", not_close),
         fmt::format("{} {} no NIC below the same PCIe switch, while other GPUs have one",
                     numbered("GPU", not_close), not_close.size() == 1 ? "has" : "have"),
         "no software fix; expect these GPUs to be slower to other nodes"});
  return findings;
}

Findings check_numa(const Node& node) {
  const auto cpu_nodes =
      std::count_if(node.numa_nodes.begin(), node.numa_nodes.end(),
                    [](const NumaNode& numa_node) { return numa_node.kind == NumaKind::cpu; });
  // With a single NUMA node, unknown NUMA nodes of devices do not matter; a recorded matrix has the
  // distances already.
  if (cpu_nodes == 1 || node.recorded)
    return {};
  std::vector<std::string> names;
  std::string address;
  auto note = [&](const std::string& name, int entry) {
    names.push_back(name);
    if (address.empty() && entry >= 0)
      address = to_string(node.pci[static_cast<std::size_t>(entry)].address);
  };
  for (const Gpu& gpu : node.gpus)
    if (!gpu.numa)
      note(fmt::format("GPU {}", gpu.index), gpu.pci);
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Nic& nic = node.nics[i];
    if (!nic.numa && !nic.virtual_device && (!nic.rdma || *nic.rdma))
      note(nic_name(node, static_cast<int>(i)), nic.pci);
  }
  if (names.empty())
    return {};
  bool matters = false;
  for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu)
    for (const NicUse& use : usable_ports(node))
      matters = matters || !gpu_nic_distance(node, static_cast<int>(gpu), use.nic).path;
  return {
      {"numa-unknown", matters ? Severity::warning : Severity::info, enumerate(names),
       fmt::format("the NUMA node of {} is unknown{}", enumerate(names),
                   matters ? ": which NIC is near which GPU is unknown" : ""),
       address.empty()
           ? "configure the firmware or hypervisor to report NUMA affinity"
           : fmt::format("configure the firmware or hypervisor to report it, or set it manually: "
                         "echo $NUMA_NODE > /sys/bus/pci/devices/{}/numa_node",
                         address)}};
}

} // namespace

Findings check_affinity(const Node& node) {
  Findings findings = check_gpus_without_nic(node);
  for (Finding& finding : check_numa(node))
    findings.push_back(std::move(finding));
  return findings;
}

Findings check_rdma(const Node& node) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    if (!node.nics[i].rdma || *node.nics[i].rdma)
      return {};
    names.push_back(nic_name(node, static_cast<int>(i)));
  }
  if (names.empty())
    return {};
  return {{"nic-not-rdma", node.gpus.empty() ? Severity::info : Severity::warning,
           enumerate(names, 8),
           fmt::format("no RDMA device on this node: {} {} TCP only", enumerate(names, 8),
                       names.size() == 1 ? "carries" : "carry"),
           "install an RDMA NIC or load its driver; for tests, use Soft-RoCE: modprobe "
           "rdma_rxe && rdma link add rxe0 type rxe netdev " +
               shell_word(node.nics[0].name)}};
}

namespace {

/// Whether two GPUs are of the same model; empty if unknown.
std::optional<bool> same_model(const Node& node, const Gpu& left, const Gpu& right) {
  if (left.pci >= 0 && right.pci >= 0) {
    const PciDevice& a = node.pci[static_cast<std::size_t>(left.pci)];
    const PciDevice& b = node.pci[static_cast<std::size_t>(right.pci)];
    if (a.vendor && b.vendor && a.device && b.device)
      return std::pair(*a.vendor, *a.device) == std::pair(*b.vendor, *b.device);
  }
  if (left.name && right.name)
    return *left.name == *right.name;
  return std::nullopt;
}

bool are_linked(const Node& node, int left, int right) {
  return distance(node, left, right).path == PathClass::nvlink;
}

bool links_to_gpus(const Gpu& gpu) {
  return std::any_of(gpu.links.begin(), gpu.links.end(), [](const GpuLink& link) {
    return link.target != LinkTarget::cpu && link.count > 0;
  });
}

bool through_switches(const Gpu& gpu) {
  return std::any_of(gpu.links.begin(), gpu.links.end(), [](const GpuLink& link) {
    return link.target == LinkTarget::nvswitch && link.count > 0;
  });
}

/// Whether every GPU of `linked` reaches every other by NVLink or NVSwitches. Then every GPU of the
/// machine should have NVLinks, unlike GPUs beside a pair with an NVLink bridge.
bool are_all_joined(const Node& node, const std::vector<int>& linked) {
  const bool switched = std::any_of(linked.begin(), linked.end(), [&node](int gpu) {
    return through_switches(node.gpus[static_cast<std::size_t>(gpu)]);
  });
  if (switched)
    return true;
  for (const int left : linked)
    for (const int right : linked)
      if (left != right && !are_linked(node, left, right))
        return false;
  return linked.size() > 2;
}

} // namespace

Findings check_nvlinks(const Node& node) {
  std::vector<int> linked, without;
  for (const Gpu& gpu : node.gpus) {
    bool has = links_to_gpus(gpu);
    for (const Gpu& other : node.gpus)
      has = has || (gpu.index != other.index && are_linked(node, gpu.index, other.index));
    (has ? linked : without).push_back(gpu.index);
  }
  if (linked.empty() || !are_all_joined(node, linked))
    return {};
  bool all_known = true;
  std::erase_if(without, [&](int gpu) {
    const std::optional<bool> same = same_model(node, node.gpus[static_cast<std::size_t>(gpu)],
                                                node.gpus[static_cast<std::size_t>(linked[0])]);
    all_known = all_known && same.has_value();
    return same == false;
  });
  if (without.empty())
    return {};
  const bool amd = node.gpus[static_cast<std::size_t>(without[0])].vendor == "amd";
  const std::string tool =
      amd ? std::string("rocm-smi --showtopo; see dmesg for the cause")
          : fmt::format(
                "nvidia-smi nvlink -s -i {0}; see the fabric manager's log and Xid messages in "
                "dmesg for the cause; nvidia-smi -r -i {0} resets it",
                without[0]);
  // A display adapter beside compute GPUs has no NVLinks either: if the source has no models, this
  // may be one.
  return {{"gpu-without-nvlink", all_known ? Severity::error : Severity::warning,
           numbered("GPU", without),
           fmt::format("{} {} no {}, though {} {}: its traffic to them goes over PCIe",
                       numbered("GPU", without), without.size() == 1 ? "has" : "have",
                       amd ? "xGMI link" : "NVLink", numbered("GPU", linked),
                       linked.size() == 1 ? "has" : "have"),
           "check its links: " + tool}};
}

namespace {

/// A GPU or an RDMA NIC with its link.
struct LinkedDevice {
  std::string name;   ///< name of a NIC
  int gpu_index = -1; ///< -1: a NIC
  const PciDevice* pci = nullptr;
};

/// A positive number: VMs and virtual functions report 0.
template <class T>
bool is_positive(const Fact<T>& fact) {
  return fact && *fact > 0;
}

template <class T>
bool is_below(const Fact<T>& fact, T expected) {
  return is_positive(fact) && *fact < expected;
}

std::vector<LinkedDevice> linked_devices(const Node& node) {
  std::vector<LinkedDevice> devices;
  for (const Gpu& gpu : node.gpus)
    if (gpu.pci >= 0)
      devices.push_back({"", gpu.index, &node.pci[static_cast<std::size_t>(gpu.pci)]});
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Nic& nic = node.nics[i];
    if (nic.pci >= 0 && !nic.virtual_device && (!nic.rdma || *nic.rdma))
      devices.push_back(
          {nic_name(node, static_cast<int>(i)), -1, &node.pci[static_cast<std::size_t>(nic.pci)]});
  }
  return devices;
}

/// The best value that a link can reach: its own maximum or, if that is unknown, the best of the
/// same model in this machine.
struct BestLink {
  double speed_GTps = 0;
  int width = 0;
  bool operator==(const BestLink&) const = default;
};
using Model = std::pair<std::uint16_t, std::uint16_t>;

std::optional<Model> model_of(const LinkedDevice& device) {
  if (!device.pci->vendor || !device.pci->device)
    return std::nullopt;
  return Model{*device.pci->vendor, *device.pci->device};
}

/// The maximum that most devices of a model reach together with their slots. NCCL's dumps contain
/// only these values, so that only a comparison with the peers shows a device in a slower slot.
std::map<Model, BestLink> usual_of_models(const std::vector<LinkedDevice>& devices) {
  std::map<Model, std::vector<BestLink>> links;
  for (const LinkedDevice& device : devices)
    if (const auto model = model_of(device))
      links[*model].push_back({device.pci->link.max_speed_GTps.value.value_or(0),
                               device.pci->link.max_width.value.value_or(0)});
  std::map<Model, BestLink> usual;
  for (const auto& [model, all] : links)
    for (const BestLink& link : all)
      if (link.speed_GTps > 0 && link.width > 0 &&
          2 * std::count(all.begin(), all.end(), link) > static_cast<std::ptrdiff_t>(all.size()))
        usual[model] = link;
  return usual;
}

std::map<Model, BestLink> best_of_models(const std::vector<LinkedDevice>& devices) {
  std::map<Model, BestLink> best;
  for (const LinkedDevice& device : devices) {
    const auto model = model_of(device);
    if (!model)
      continue;
    BestLink& link = best[*model];
    link.speed_GTps = std::max(link.speed_GTps, device.pci->link.speed_GTps.value.value_or(0));
    link.width = std::max(link.width, device.pci->link.width.value.value_or(0));
  }
  return best;
}

BestLink expected_link(const LinkedDevice& device, const std::map<Model, BestLink>& models) {
  const PcieLink& link = device.pci->link;
  BestLink expected;
  if (const auto model = model_of(device))
    expected = models.at(*model);
  if (is_positive(link.max_speed_GTps))
    expected.speed_GTps = *link.max_speed_GTps;
  if (is_positive(link.max_width))
    expected.width = *link.max_width;
  return expected;
}

bool slot_is_the_limit(const Node& node, const PciDevice& device) {
  if (device.parent < 0)
    return false;
  const PciDevice& port = node.pci[static_cast<std::size_t>(device.parent)];
  if (port.kind != PciKind::bridge)
    return false;
  const bool speed_met = is_positive(port.link.max_speed_GTps) &&
                         is_positive(device.link.speed_GTps) &&
                         *port.link.max_speed_GTps == *device.link.speed_GTps;
  const bool width_met = is_positive(port.link.max_width) && is_positive(device.link.width) &&
                         *port.link.max_width == *device.link.width;
  const bool speed_full = is_positive(device.link.max_speed_GTps) &&
                          is_positive(device.link.speed_GTps) &&
                          *device.link.speed_GTps >= *device.link.max_speed_GTps;
  const bool width_full = is_positive(device.link.max_width) && is_positive(device.link.width) &&
                          *device.link.width >= *device.link.max_width;
  return (speed_met || speed_full) && (width_met || width_full);
}

/// Whether most devices of its model here run at full speed and width: then it is this device's
/// slot that differs.
bool is_rarely_limited(const std::vector<LinkedDevice>& devices,
                       const std::map<Model, BestLink>& models, const LinkedDevice& device) {
  const auto model = model_of(device);
  int peers = 0, below = 0;
  for (const LinkedDevice& peer : devices) {
    if (!model || model_of(peer) != model)
      continue;
    const BestLink expected = expected_link(peer, models);
    ++peers;
    below += is_below(peer.pci->link.speed_GTps, expected.speed_GTps) ||
                     is_below(peer.pci->link.width, expected.width)
                 ? 1
                 : 0;
  }
  return 2 * below < peers;
}

/// Why a link is below its best; each is a finding of its own.
enum class LinkCause { degraded, idle_gpu, slot, slower_slot };

/// Devices whose links are below their best for the same reason.
class DegradedLinks {
public:
  void add(const LinkedDevice& device, const std::string& shortfall) {
    Group& group = groups_[shortfall];
    if (device.gpu_index >= 0)
      group.gpus.push_back(device.gpu_index);
    else
      group.nics.push_back(device.name);
    if (first_address_.empty())
      first_address_ = to_string(device.pci->address);
  }

  const std::string& first_address() const { return first_address_; }
  /// "GPU 0-7 and mlx5_3"
  std::string subject() const {
    Group all;
    for (const auto& [shortfall, group] : groups_) {
      all.gpus.insert(all.gpus.end(), group.gpus.begin(), group.gpus.end());
      all.nics.insert(all.nics.end(), group.nics.begin(), group.nics.end());
    }
    return all.words();
  }
  /// "GPU 0-7 at 2.5 of 32 GT/s; mlx5_3 on 8 of 16 lanes"
  std::string words() const {
    std::vector<std::string> parts;
    for (const auto& [shortfall, group] : groups_)
      parts.push_back(group.words() + " " + shortfall);
    return join(parts, "; ");
  }

private:
  struct Group {
    std::vector<int> gpus;
    std::vector<std::string> nics;
    std::string words() const {
      std::vector<std::string> devices = nics;
      if (!gpus.empty())
        devices.insert(devices.begin(), numbered("GPU", gpus));
      return enumerate(devices);
    }
  };
  std::map<std::string, Group> groups_;
  std::string first_address_;
};

Finding describe(LinkCause cause, const DegradedLinks& links) {
  const std::string subject = links.subject();
  const std::string words = "PCIe links below their maximum: " + links.words();
  switch (cause) {
  case LinkCause::idle_gpu:
    return {"pcie-degraded", Severity::info, subject,
            words + "; an idle GPU lowers its link speed, so this may be power saving",
            "check again under load: nvidia-smi "
            "--query-gpu=index,pcie.link.gen.current,pcie.link.gen.max --format=csv"};
  case LinkCause::slot:
    return {"pcie-degraded", Severity::info, subject, words + "; the slot does not support more",
            "move the device to a faster slot if its bandwidth is needed"};
  case LinkCause::slower_slot:
    return {"pcie-degraded", Severity::warning, subject,
            "PCIe links with a lower maximum than those of the same model here: " + links.words(),
            fmt::format("compare the slot, the riser and the slot's settings in the firmware with "
                        "a peer's: lspci -vvs {} | grep LnkCap",
                        links.first_address())};
  case LinkCause::degraded:
    break;
  }
  return {"pcie-degraded", Severity::warning, subject, words + "; this limits their bandwidth",
          fmt::format("reseat the device or its riser and check the slot's settings in the "
                      "firmware: lspci -vvs {} | grep -E 'LnkCap|LnkSta'",
                      links.first_address())};
}

} // namespace

Findings check_pcie_links(const Node& node) {
  const std::vector<LinkedDevice> devices = linked_devices(node);
  const std::map<Model, BestLink> models = best_of_models(devices);
  const std::map<Model, BestLink> usual = usual_of_models(devices);
  std::map<LinkCause, DegradedLinks> groups;
  const auto add = [&groups](LinkCause cause, const LinkedDevice& device, const Fact<double>& speed,
                             const Fact<int>& width, const BestLink& expected) {
    std::vector<std::string> parts;
    if (is_below(speed, expected.speed_GTps))
      parts.push_back(fmt::format("at {} of {} GT/s", *speed, expected.speed_GTps));
    if (is_below(width, expected.width))
      parts.push_back(fmt::format("on {} of {} lanes", *width, expected.width));
    if (!parts.empty())
      groups[cause].add(device, enumerate(parts));
    return !parts.empty();
  };
  for (const LinkedDevice& device : devices) {
    const PcieLink& link = device.pci->link;
    const BestLink expected = expected_link(device, models);
    LinkCause cause = LinkCause::degraded;
    if (slot_is_the_limit(node, *device.pci))
      cause = is_rarely_limited(devices, models, device) ? LinkCause::slower_slot : LinkCause::slot;
    else if (device.gpu_index >= 0 && !is_below(link.width, expected.width))
      cause = LinkCause::idle_gpu;
    if (add(cause, device, link.speed_GTps, link.width, expected))
      continue;
    if (const auto model = model_of(device); model && usual.count(*model) > 0)
      add(LinkCause::slower_slot, device, link.max_speed_GTps, link.max_width, usual.at(*model));
  }
  Findings findings;
  for (const auto& [cause, links] : groups)
    findings.push_back(describe(cause, links));
  return findings;
}

namespace {

/// A port that a finding is about.
struct PortRef {
  int nic = 0;
  const NicPort* port = nullptr;
};

bool is_real_rdma(const Nic& nic) {
  return !nic.virtual_device && (!nic.rdma || *nic.rdma);
}

bool carries_traffic(const NicPort& port) {
  return !port.state || *port.state == PortState::active;
}

std::vector<std::string> names_of(const Node& node, const std::vector<PortRef>& ports) {
  std::vector<std::string> names;
  for (const PortRef& ref : ports)
    names.push_back(port_name(node, ref.nic, ref.port->number));
  return names;
}

/// The command that shows a port's cable and errors: the vendor's tool, or else the kernel's.
std::string port_tool(const Node& node, const PortRef& ref) {
  const Nic& nic = node.nics[static_cast<std::size_t>(ref.nic)];
  const Fact<std::uint16_t> vendor = nic.pci >= 0
                                         ? node.pci[static_cast<std::size_t>(nic.pci)].vendor
                                         : unknown<std::uint16_t>("no PCI function");
  const bool mlx5 = nic.driver ? starts_with(*nic.driver, "mlx5")
                    : vendor   ? *vendor == pci_ids::mellanox
                               : starts_with(nic.name, "mlx5");
  if (mlx5)
    return fmt::format("mlxlink -d {} -p {}", nic_name(node, ref.nic), ref.port->number);
  if (ref.port->netdev)
    return "ethtool " + *ref.port->netdev;
  return fmt::format("rdma link show {}/{}", nic_name(node, ref.nic), ref.port->number);
}

/// As port_tool(), including the transceiver's data.
std::string port_module_tool(const Node& node, const PortRef& ref) {
  const std::string tool = port_tool(node, ref);
  if (starts_with(tool, "mlxlink"))
    return tool + " -m";
  return starts_with(tool, "ethtool") ? "ethtool -m " + *ref.port->netdev : tool;
}

/// The commands that bring all of these ports up: one for each interface, one for all subnets.
std::string port_down_fix(const Node& node, const std::vector<PortRef>& ports) {
  std::vector<std::string> commands, waiting;
  const PortRef* first_dark = nullptr;
  for (const PortRef& ref : ports) {
    if (*ref.port->state != PortState::down) {
      waiting.push_back(port_name(node, ref.nic, ref.port->number));
      continue;
    }
    first_dark = first_dark == nullptr ? &ref : first_dark;
    if (ref.port->netdev)
      commands.push_back(fmt::format("ip link set dev {} up", shell_word(*ref.port->netdev)));
  }
  std::vector<std::string> steps;
  if (!commands.empty())
    steps.push_back(join(commands, "; "));
  if (first_dark != nullptr)
    steps.push_back(
        (commands.empty() ? "check the cable and the switch's port: " : "then check the cable: ") +
        port_tool(node, *first_dark));
  if (!waiting.empty())
    steps.push_back(fmt::format("start a subnet manager for {} (systemctl start opensm, or on the "
                                "switch)",
                                enumerate(waiting)));
  return join(steps, ", ");
}

Finding port_down(const Node& node, const std::vector<PortRef>& ports, Severity severity,
                  const std::string& consequence) {
  std::vector<std::string> states;
  for (const PortRef& ref : ports)
    states.push_back(port_name(node, ref.nic, ref.port->number) + " is " +
                     to_string(*ref.port->state));
  return {"port-down", severity, enumerate(names_of(node, ports)), enumerate(states) + consequence,
          port_down_fix(node, ports)};
}

Findings check_port_states(const Node& node) {
  std::vector<PortRef> dead_nics;
  std::vector<PortRef> spare_ports;
  bool any_active = false;
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Nic& nic = node.nics[i];
    if (!is_real_rdma(nic))
      continue;
    const bool active =
        nic.ports.empty() || std::any_of(nic.ports.begin(), nic.ports.end(), carries_traffic);
    any_active = any_active || active;
    for (const NicPort& port : nic.ports)
      if (!carries_traffic(port))
        (active ? spare_ports : dead_nics).push_back({static_cast<int>(i), &port});
  }
  Findings findings;
  if (!dead_nics.empty())
    findings.push_back(
        any_active
            ? port_down(node, dead_nics, Severity::warning,
                        ": it carries no traffic, and NVSHMEM's indices of later devices shift")
            : port_down(node, dead_nics, Severity::error, ": no active RDMA port remains"));
  if (!spare_ports.empty())
    findings.push_back(
        port_down(node, spare_ports, Severity::info, ", next to an active port of the same NIC"));
  return findings;
}

/// Ports are peers if they are of one NIC model, one link layer (if the source has it) and one
/// role: a storage NIC may well be connected at a lower rate than the fabric's.
using PeerGroup = std::tuple<std::uint16_t, std::uint16_t, std::optional<LinkLayer>, PortRole>;

std::map<PeerGroup, std::vector<PortRef>> peer_groups(const Node& node) {
  std::map<std::pair<int, int>, PortRole> roles;
  for (const RatedPort& rated : port_roles(node))
    roles.emplace(std::pair(rated.port.nic, rated.port.port), rated.role);
  std::map<PeerGroup, std::vector<PortRef>> groups;
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Nic& nic = node.nics[i];
    if (!is_real_rdma(nic) || nic.pci < 0)
      continue;
    const PciDevice& device = node.pci[static_cast<std::size_t>(nic.pci)];
    if (!device.vendor || !device.device)
      continue;
    for (const NicPort& port : nic.ports) {
      const auto role = roles.find({static_cast<int>(i), port.number});
      if (role != roles.end() && port.rate_Gbps)
        groups[{*device.vendor, *device.device, port.link_layer.value, role->second}].push_back(
            {static_cast<int>(i), &port});
    }
  }
  return groups;
}

/// The most frequent rate of these ports; in a tie the higher one.
double usual_rate_Gbps(const std::vector<PortRef>& peers) {
  std::map<double, int> counts;
  for (const PortRef& ref : peers)
    ++counts[*ref.port->rate_Gbps];
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) {
                            return std::tie(a.second, a.first) < std::tie(b.second, b.first);
                          })
      ->first;
}

Findings check_port_rates(const Node& node) {
  Findings findings;
  for (const auto& [group, peers] : peer_groups(node)) {
    const double usual = usual_rate_Gbps(peers);
    std::vector<PortRef> slow;
    std::vector<std::string> rates;
    for (const PortRef& ref : peers)
      if (*ref.port->rate_Gbps < usual) {
        slow.push_back(ref);
        rates.push_back(fmt::format("{} runs at {} Gb/s",
                                    port_name(node, ref.nic, ref.port->number),
                                    *ref.port->rate_Gbps));
      }
    if (!slow.empty())
      findings.push_back(
          {"port-slow", Severity::warning, enumerate(names_of(node, slow)),
           fmt::format("{} while its peers of the same model run at {} Gb/s", enumerate(rates),
                       usual),
           "compare the cable, the transceiver and the switch's port with a peer's: " +
               port_module_tool(node, slow[0])});
  }
  return findings;
}

} // namespace

Findings check_ports(const Node& node) {
  Findings findings = check_port_states(node);
  for (Finding& finding : check_port_rates(node))
    findings.push_back(std::move(finding));
  return findings;
}

namespace {

/// More findings of one severity are less useful than the report's own list of notes.
constexpr std::size_t shown_notes = 6;

const char* const learn_names =
    "get the device names first (ls /sys/class/infiniband on that host): a setting with unknown "
    "names would match no device";

/// How to get the facts that the source lacks.
std::string better_source(const Node& node) {
  if (node.format == "nvidia-smi")
    return "provide the complete output of nvidia-smi topo -m, or run shmemctl topo on that host";
  if (node.format == "nccl-xml")
    return "dump the file again on that host (NCCL_TOPO_DUMP_FILE), or run shmemctl topo on "
           "that host";
  if (node.format == "hwloc-xml" || node.format == "report")
    return "run shmemctl topo on that host: it queries the kernel and the GPU driver";
  // For a copy, `doctor` would examine the machine on which the copy is read.
  if (node.format == "sysroot")
    return "run shmemctl doctor on that host, or record it again as root: sudo shmemctl gather -o "
           "node.tar.zst";
  return "run shmemctl doctor to see what is missing";
}

std::string source_of(const Node& node) {
  return node.format.empty() ? "topology" : node.format;
}

bool is_file(const Node& node) {
  static constexpr std::array<std::string_view, 4> formats = {"nvidia-smi", "nccl-xml", "hwloc-xml",
                                                              "report"};
  return std::find(formats.begin(), formats.end(), node.format) != formats.end();
}

void report_notes(const Node& node, const std::vector<std::string>& notes, Severity severity,
                  Findings& to) {
  // The last one that is shown represents the rest.
  const std::size_t shown = notes.size() > shown_notes ? shown_notes - 1 : notes.size();
  for (std::size_t i = 0; i < shown; ++i)
    to.push_back({"topology-incomplete", severity, source_of(node), printable(notes[i], 400),
                  better_source(node)});
  if (shown < notes.size())
    to.push_back({"topology-incomplete", severity, source_of(node),
                  std::to_string(notes.size() - shown) +
                      " more notes on the input; the JSON report lists all of them (topology)",
                  better_source(node)});
}

/// NICs that may be RDMA devices, but whose names are not in the source.
std::vector<int> unnamed_nics(const Node& node) {
  std::vector<int> unnamed;
  for (std::size_t i = 0; i < node.nics.size(); ++i)
    if (node.nics[i].unnamed && node.nics[i].rdma.value.value_or(true))
      unnamed.push_back(static_cast<int>(i));
  return unnamed;
}

void report_unnamed(const Node& node, Findings& to) {
  const std::vector<int> unnamed = unnamed_nics(node);
  if (unnamed.empty())
    return;
  std::vector<std::string> labels;
  for (const int nic : unnamed)
    labels.push_back(nic_name(node, nic));
  const std::vector<NicUse> candidates = fabric_ports(node);
  const bool used = std::any_of(candidates.begin(), candidates.end(), [&node](const NicUse& use) {
    return node.nics[static_cast<std::size_t>(use.nic)].unnamed;
  });
  to.push_back(
      {"nic-names-unknown", used ? Severity::warning : Severity::info, enumerate(labels, 8),
       "device names unknown: the source does not name " + enumerate(labels, 8) +
           ", so these are labels only; lists are not checked against them, and no settings "
           "name them",
       better_source(node)});
}

bool is_word_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

/// True if `text` contains `word` as a whole word.
bool has_word(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word_letter(text[at - 1])) &&
        (end == text.size() || !is_word_letter(text[end])))
      return true;
  }
  return false;
}

} // namespace

Findings check_source(const Node& node) {
  Findings findings;
  report_notes(node, node.notes, Severity::warning, findings);
  report_notes(node, node.remarks, Severity::info, findings);
  if (is_file(node) && node.gpus.empty() && node.nics.empty())
    findings.push_back({"topology-incomplete", Severity::warning, source_of(node),
                        "this file contains no GPU and no NIC that is recognized",
                        better_source(node)});
  report_unnamed(node, findings);
  return findings;
}

void withhold_unknown_names(const Node& node, Findings& findings) {
  const std::vector<int> unnamed = unnamed_nics(node);
  for (Finding& finding : findings) {
    const bool names_one = std::any_of(unnamed.begin(), unnamed.end(), [&](int nic) {
      return has_word(finding.fix, node.nics[static_cast<std::size_t>(nic)].name);
    });
    const bool prefix =
        !unnamed.empty() && finding.fix.find("NVSHMEM_HCA_PREFIX=") != std::string::npos;
    if (names_one || prefix)
      finding.fix = learn_names;
  }
}

} // namespace shmemctl
