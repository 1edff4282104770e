// Checks of PCIe links and of what their bridges redirect.
#include "src/instruments/doctor/pcie.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/support.h"

namespace shmemctl::doctor {

namespace {

constexpr std::size_t status_register = 0x06, capabilities_pointer = 0x34, header_bytes = 0x40,
                      extended_start = 0x100, space_bytes = 4096;
constexpr std::uint16_t status_has_capabilities = 1U << 4;
constexpr std::uint8_t pci_express_id = 0x10;
constexpr std::uint16_t acs_id = 0x000d;
// No chain of capabilities without overlap can have more entries; a longer chain is a cycle.
constexpr int max_capabilities = (256 - 0x40) / 4;
constexpr int max_extended_capabilities = (4096 - 0x100) / 8;

} // namespace

std::optional<std::uint16_t> ConfigSpace::word(std::size_t offset) const {
  if (offset + 2 > bytes_.size())
    return std::nullopt;
  const auto low = static_cast<unsigned char>(bytes_[offset]);
  const auto high = static_cast<unsigned char>(bytes_[offset + 1]);
  return static_cast<std::uint16_t>(low | high << 8);
}

std::optional<std::size_t> ConfigSpace::capability(std::uint8_t id) const {
  if (!has_capabilities() || (*word(status_register) & status_has_capabilities) == 0)
    return std::nullopt;
  std::size_t at = *word(capabilities_pointer) & 0xfcU;
  for (int i = 0; i < max_capabilities && at >= header_bytes; ++i) {
    const std::uint16_t header = *word(at);
    if ((header & 0xffU) == id)
      return at;
    at = static_cast<std::size_t>(header >> 8) & 0xfcU;
  }
  return std::nullopt;
}

std::optional<std::size_t> ConfigSpace::extended_capability(std::uint16_t id) const {
  std::size_t at = extended_start;
  for (int i = 0; i < max_extended_capabilities && at >= extended_start; ++i) {
    const std::optional<std::uint16_t> header = word(at);
    const std::optional<std::uint16_t> next = word(at + 2);
    if (!header || !next || *header == 0 || *header == 0xffff)
      return std::nullopt;
    if (*header == id)
      return at;
    at = static_cast<std::size_t>(*next >> 4) & 0xffcU;
  }
  return std::nullopt;
}

std::optional<std::uint16_t> ConfigSpace::device_control() const {
  const std::optional<std::size_t> at = capability(pci_express_id);
  return at ? word(*at + 8) : std::nullopt;
}

std::optional<std::uint16_t> ConfigSpace::acs_control() const {
  const std::optional<std::size_t> at = extended_capability(acs_id);
  return at ? word(*at + 6) : std::nullopt;
}

int max_read_request_bytes(std::uint16_t device_control) {
  return 128 << (device_control >> 12 & 7U);
}

std::string config_path(const PciAddress& address) {
  return "/sys/bus/pci/devices/" + to_string(address) + "/config";
}

std::optional<ConfigSpace> read_config_space(const Sysroot& sysroot, const PciAddress& address) {
  std::optional<std::string> bytes = sysroot.read(config_path(address), space_bytes);
  if (!bytes)
    return std::nullopt;
  return ConfigSpace(std::move(*bytes));
}

namespace {

constexpr int lanes_max = 32; // hypervisors report 63 or 255 for emulated links

const PciDevice& device_at(const Node& node, int index) {
  return node.pci[static_cast<std::size_t>(index)];
}

std::set<int> gpu_functions(const Node& node) {
  std::set<int> result;
  for (const Gpu& gpu : node.gpus)
    if (gpu.pci >= 0)
      result.insert(gpu.pci);
  return result;
}

std::set<int> rdma_functions(const Node& node) {
  std::set<int> result;
  for (const Nic* nic : rdma_nics(node))
    if (nic->pci >= 0)
      result.insert(nic->pci);
  return result;
}

std::optional<std::string> no_device(const Node& node) {
  if (gpu_functions(node).empty() && rdma_functions(node).empty())
    return "no GPU and no RDMA device with a PCI function on this node";
  return std::nullopt;
}

/// Bridges above a function, the nearest first.
std::vector<int> bridges_above(const Node& node, int function) {
  std::vector<int> result;
  for (int at = device_at(node, function).parent; at >= 0; at = device_at(node, at).parent)
    result.push_back(at);
  return result;
}

/// One physical link, identified by the device at its lower end. Inside a switch, between its
/// upstream and downstream ports, there is no physical link.
struct Link {
  int lower = -1;
  int upper = -1; ///< the port above, -1 if unknown
};

std::vector<Link> links_to(const Node& node, const std::set<int>& functions) {
  std::set<int> seen;
  std::vector<Link> links;
  auto add = [&](int lower, int upper) {
    if (seen.insert(lower).second)
      links.push_back({lower, upper});
  };
  for (const int function : functions) {
    const std::vector<int> above = bridges_above(node, function);
    const std::size_t depth = above.size();
    // From the top: root port (depth 0), upstream port (1), downstream port (2), and so on.
    for (std::size_t i = 0; i < depth; ++i)
      if ((depth - 1 - i) % 2 == 1 && i + 1 < depth)
        add(above[i], above[i + 1]);
    add(function, depth % 2 == 1 ? above.front() : -1);
  }
  return links;
}

/// Lanes or GT/s of a link: now, and the maximum of its lower device and of both ends.
struct Rate {
  double now = 0, own_max = 0, both_max = 0;
};

/// @param now, max  what to compare, from a PcieLink
template <class Now, class Max>
std::optional<Rate> rate_of(const Node& node, const Link& link, Now now, Max max, double limit) {
  const std::optional<double> current = now(device_at(node, link.lower).link);
  const std::optional<double> own = max(device_at(node, link.lower).link);
  if (!current || !own || *current <= 0 || *own <= 0 || *own > limit || *current > limit)
    return std::nullopt;
  double both = *own;
  if (link.upper >= 0)
    if (const std::optional<double> upper = max(device_at(node, link.upper).link))
      if (*upper > 0 && *upper <= limit)
        both = std::min(both, *upper);
  return Rate{*current, *own, both};
}

std::string link_fix(const std::vector<std::string>& addresses) {
  return fmt::format(
      "for d in {}; do lspci -vvs $d | grep -E 'LnkCap:|LnkSta:'; done  # reseat the "
      "card or riser, check the slot's BIOS setting",
      join(addresses, " "));
}

/// Links to GPUs and NICs below their maximum: degraded, lowered by an idle GPU, limited by a slot.
struct LinkFindings {
  std::vector<std::string> degraded, idle_gpus, limited_by_slot, addresses;
  std::size_t measured = 0;
  std::size_t total = 0;
};

template <class Now, class Max>
LinkFindings inspect_links(const Node& node, Now now, Max max, double limit, const char* unit,
                           bool gpus_lower_it) {
  LinkFindings found;
  const std::set<int> gpus = gpu_functions(node);
  std::set<int> functions = gpus;
  functions.merge(rdma_functions(node));
  for (const Link& link : links_to(node, functions)) {
    ++found.total;
    const std::optional<Rate> rate = rate_of(node, link, now, max, limit);
    if (!rate)
      continue;
    ++found.measured;
    if (rate->now >= rate->own_max)
      continue;
    const std::string address = to_string(device_at(node, link.lower).address);
    const std::string text =
        fmt::format("{} at {:g} of {:g}{}", address, rate->now, rate->own_max, unit);
    found.addresses.push_back(address);
    if (rate->now >= rate->both_max)
      found.limited_by_slot.push_back(text);
    else if (gpus_lower_it && gpus.count(link.lower) != 0)
      found.idle_gpus.push_back(text);
    else
      found.degraded.push_back(text);
  }
  return found;
}

CheckResult judge_links(const LinkFindings& found, const std::string& what,
                        const std::string& file) {
  if (found.measured == 0)
    return skipped("no device reports the " + what + " of its link",
                   "/sys/bus/pci/devices/*/" + file + ": unknown or absent");
  const std::string path = "/sys/bus/pci/devices/*/" + file + ": ";
  if (!found.degraded.empty())
    return failed("below the " + what + " that both ends support: " + name_list(found.degraded),
                  path + name_list(found.degraded), link_fix(found.addresses));
  if (!found.limited_by_slot.empty())
    return warned("the slot limits the " + what + ": " + name_list(found.limited_by_slot),
                  path + name_list(found.limited_by_slot), link_fix(found.addresses));
  if (!found.idle_gpus.empty())
    return warned("GPU links are below their " + what +
                      ", which is normal while a GPU is idle; check again under load: " +
                      name_list(found.idle_gpus),
                  path + name_list(found.idle_gpus),
                  "nvidia-smi -q -d PERFORMANCE,POWER && " + link_fix(found.addresses));
  return passed("no link to a GPU or NIC is below its full " + what,
                path + std::to_string(found.measured) + " of " + std::to_string(found.total) +
                    " links report it");
}

/// The bridges that peer-to-peer traffic of GPUs passes when it need not go up to the root complex:
/// those between a GPU and an RDMA device or another GPU below the same host bridge. A bridge above
/// both devices is not included, because the traffic turns around below it.
std::set<int> bridges_between(const Node& node) {
  struct Count {
    int gpus = 0, all = 0;
  };
  const std::set<int> gpus = gpu_functions(node);
  std::set<int> functions = gpus;
  functions.merge(rdma_functions(node));
  std::map<int, Count> below_host, below_bridge;
  const auto count = [&gpus](int function, Count& counted) {
    counted.gpus += gpus.count(function) != 0 ? 1 : 0;
    ++counted.all;
  };
  for (const int function : functions) {
    count(function, below_host[device_at(node, function).host_bridge]);
    for (const int bridge : bridges_above(node, function))
      if (device_at(node, bridge).kind == PciKind::bridge)
        count(function, below_bridge[bridge]);
  }
  std::set<int> result;
  for (const auto& [bridge, below] : below_bridge) {
    const Count& all = below_host[device_at(node, bridge).host_bridge];
    const int gpus_beside = all.gpus - below.gpus;
    const int beside = all.all - below.all;
    if ((below.gpus > 0 && beside > 0) || gpus_beside > 0)
      result.insert(bridge);
  }
  return result;
}

/// A device that GPUs exchange data with, and its name in a message.
struct Partner {
  int function = -1;
  std::string name;
};

/// The GPUs whose traffic with these partners passes a redirecting bridge, each with the nearest of
/// these partners: "GPU0 and mlx5_0".
std::vector<std::string> redirected_pairs(const Node& node, const std::vector<Partner>& partners,
                                          const std::set<int>& redirecting) {
  constexpr std::size_t max_gpus = 64; // more than a node has
  std::vector<std::string> pairs;
  for (std::size_t i = 0; i < std::min(node.gpus.size(), max_gpus); ++i) {
    const int gpu = node.gpus[i].pci;
    if (gpu < 0)
      continue;
    const std::vector<int> of_gpu = bridges_above(node, gpu);
    std::size_t most_shared = 0;
    const Partner* nearest = nullptr;
    for (const Partner& partner : partners) {
      if (partner.function == gpu ||
          device_at(node, partner.function).host_bridge != device_at(node, gpu).host_bridge)
        continue;
      const std::vector<int> of_partner = bridges_above(node, partner.function);
      const auto [last_of_gpu, last_of_partner] =
          std::mismatch(of_gpu.rbegin(), of_gpu.rend(), of_partner.rbegin(), of_partner.rend());
      const auto redirects = [&redirecting](int bridge) { return redirecting.count(bridge) != 0; };
      const bool redirected = std::any_of(last_of_gpu, of_gpu.rend(), redirects) ||
                              std::any_of(last_of_partner, of_partner.rend(), redirects);
      const auto shared = static_cast<std::size_t>(last_of_gpu - of_gpu.rbegin());
      if (redirected && (nearest == nullptr || shared > most_shared)) {
        nearest = &partner;
        most_shared = shared;
      }
    }
    if (nearest != nullptr)
      pairs.push_back(fmt::format("GPU{} and {}", node.gpus[i].index, nearest->name));
  }
  return pairs;
}

/// A sentence about the bridges and the pairs whose traffic they redirect: "..., GPU0 and mlx5_0,
/// GPU1 and mlx5_1, ...". Pairs of GPUs are listed only if no NIC is affected.
std::string redirected_words(const Node& node, const std::set<int>& redirecting) {
  std::vector<Partner> nics, gpus;
  for (const Nic* nic : rdma_nics(node))
    if (nic->pci >= 0)
      nics.push_back({nic->pci, nic->name});
  for (const Gpu& gpu : node.gpus)
    if (gpu.pci >= 0)
      gpus.push_back({gpu.pci, fmt::format("GPU{}", gpu.index)});
  const std::vector<std::string> with_nics = redirected_pairs(node, nics, redirecting);
  const bool any = !with_nics.empty();
  return fmt::format("ACS redirects traffic between {} to the root complex, so that GPUDirect RDMA "
                     "and peer-to-peer copies are slow or fail: {}; {} {}",
                     any ? "GPUs and NICs" : "GPUs",
                     name_list(any ? with_nics : redirected_pairs(node, gpus, redirecting)),
                     redirecting.size() == 1
                         ? std::string("at bridge")
                         : fmt::format("at {} bridges, the first of them", redirecting.size()),
                     to_string(device_at(node, *redirecting.begin()).address));
}

/// The kernel parameter that disables ACS redirection at these bridges after a reboot. It lists
/// their models or, if not all are known, their addresses: four at most, otherwise none.
std::string acs_parameter(const Node& node, const std::set<int>& redirecting) {
  constexpr std::size_t max_models = 4;
  std::set<std::string> models;
  std::vector<std::string> addresses;
  for (const int bridge : redirecting) {
    const PciDevice& device = device_at(node, bridge);
    addresses.push_back(to_string(device.address));
    models.insert(device.vendor && device.device
                      ? fmt::format("pci:{:04x}:{:04x}", *device.vendor, *device.device)
                      : std::string());
  }
  const bool by_model = models.count("") == 0 && models.size() <= max_models;
  const std::vector<std::string> each(models.begin(), models.end());
  if (!by_model && addresses.size() > max_models)
    return "pci=disable_acs_redir= with the bridges, separated by ;";
  return "pci=disable_acs_redir=" + join(by_model ? each : addresses, ";");
}

std::string acs_fix(const Node& node, const std::set<int>& redirecting) {
  constexpr std::size_t max_listed = 8;
  std::vector<std::string> addresses;
  for (const int bridge : redirecting)
    addresses.push_back(to_string(device_at(node, bridge).address));
  const std::string bridges = addresses.size() <= max_listed
                                  ? join(addresses, " ")
                                  : "$(lspci -Dd ::0604 | cut -d\" \" -f1)";
  return fmt::format("sudo sh -c 'for b in {}; do setpci -s $b ECAP_ACS+6.w=0:1c; done'  # until "
                     "the next boot; to keep it: ACS off in the BIOS, or kernel parameter \"{}\"; "
                     "leave ACS on where virtual machines need it",
                     bridges, acs_parameter(node, redirecting));
}

/// Device Control of each RDMA device's function; the addresses of those that cannot be read.
struct DeviceControls {
  std::map<PciAddress, std::uint16_t> values;
  std::vector<std::string> unreadable;
};

DeviceControls read_device_controls(const CheckContext& context) {
  DeviceControls result;
  for (const PciAddress& address : rdma_addresses(context.node)) {
    const std::optional<ConfigSpace> space = read_config_space(context.sysroot, address);
    const auto value = space ? space->device_control() : std::nullopt;
    if (value)
      result.values.emplace(address, *value);
    else
      result.unreadable.push_back(
          config_path(address) +
          (space ? ": only " + std::to_string(space->size()) + " bytes" : ": not there"));
  }
  return result;
}

std::optional<CheckResult> without_device_controls(const CheckContext& context,
                                                   const DeviceControls& controls) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  if (rdma_addresses(context.node).empty())
    return skipped("the RDMA devices have no PCI function");
  if (controls.values.empty())
    return skipped("the configuration space of the NICs can be read by root only",
                   name_list(controls.unreadable), as_root(context.sysroot, "pcie"));
  return std::nullopt;
}

} // namespace

std::optional<IommuGroup> iommu_group(const Sysroot& sysroot, const PciAddress& address) {
  const auto group = sysroot.realpath(sysfs_path(address) + "/iommu_group");
  if (!group)
    return std::nullopt;
  return IommuGroup{*group + "/type", sysroot.read_line(*group + "/type")};
}

CheckResult pcie_link_width(const CheckContext& context) {
  if (const auto reason = no_device(context.node))
    return skipped(*reason);
  auto number = [](const Fact<int>& fact) -> std::optional<double> {
    return fact ? std::optional<double>(*fact) : std::nullopt;
  };
  return judge_links(inspect_links(
                         context.node, [&](const PcieLink& link) { return number(link.width); },
                         [&](const PcieLink& link) { return number(link.max_width); }, lanes_max,
                         " lanes", false),
                     "width", "current_link_width");
}

CheckResult pcie_link_speed(const CheckContext& context) {
  if (const auto reason = no_device(context.node))
    return skipped(*reason);
  constexpr double any = 1e9;
  return judge_links(inspect_links(
                         context.node, [](const PcieLink& link) { return link.speed_GTps.value; },
                         [](const PcieLink& link) { return link.max_speed_GTps.value; }, any,
                         " GT/s", true),
                     "speed", "current_link_speed");
}

CheckResult pcie_acs(const CheckContext& context) {
  if (context.node.gpus.empty())
    return skipped("no GPU on this node");
  const std::set<int> bridges = bridges_between(context.node);
  if (bridges.empty())
    return skipped("no PCIe bridge is between a GPU and an RDMA device or another GPU");
  std::set<int> redirecting;
  std::vector<std::string> unreadable, evidence;
  for (const int bridge : bridges) {
    const PciAddress& address = device_at(context.node, bridge).address;
    const std::optional<ConfigSpace> space = read_config_space(context.sysroot, address);
    if (!space || !space->has_extended_capabilities()) {
      unreadable.push_back(to_string(address));
      continue;
    }
    const std::uint16_t control = space->acs_control().value_or(0);
    if ((control & (acs_request_redirect | acs_completion_redirect)) == 0)
      continue;
    redirecting.insert(bridge);
    evidence.push_back(fmt::format("{} {:#06x}", to_string(address), control));
  }
  if (!redirecting.empty())
    return warned(redirected_words(context.node, redirecting),
                  "/sys/bus/pci/devices/*/config: ACS control of " +
                      std::to_string(redirecting.size()) + " of " + std::to_string(bridges.size()) +
                      " bridges: " + name_list(evidence),
                  acs_fix(context.node, redirecting));
  if (!unreadable.empty())
    return skipped(
        "the configuration space of bridges can be read by root only: " + name_list(unreadable),
        "/sys/bus/pci/devices/*/config: 256 bytes or fewer", as_root(context.sysroot, "pcie-acs"));
  return passed("no bridge between GPUs and NICs redirects traffic to the root complex",
                "/sys/bus/pci/devices/*/config: ACS redirect is off at " +
                    std::to_string(bridges.size()) + " bridges");
}

CheckResult iommu(const CheckContext& context) {
  if (const auto reason = no_device(context.node))
    return skipped(*reason);
  const Sysroot& sysroot = context.sysroot;
  std::set<PciAddress> addresses;
  for (const PciAddress& address : gpu_addresses(context.node))
    addresses.insert(address);
  for (const PciAddress& address : rdma_addresses(context.node))
    addresses.insert(address);
  const std::string command_line = sysroot.read_line("/proc/cmdline").value_or("");
  std::vector<std::string> translated;
  std::vector<std::string> passing;
  std::size_t untyped = 0;
  for (const PciAddress& address : addresses) {
    const std::optional<IommuGroup> group = iommu_group(sysroot, address);
    if (!group)
      continue;
    if (!group->type)
      ++untyped;
    else
      (*group->type == "identity" ? passing : translated)
          .push_back(file_evidence(group->type_path, *group->type));
  }
  if (!translated.empty())
    return warned("the IOMMU translates the addresses of " + std::to_string(translated.size()) +
                      " GPUs and NICs: peer-to-peer goes through the CPU",
                  name_list(translated),
                  "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub && (update-grub "
                  "|| grub2-mkconfig -o /boot/grub2/grub.cfg) && reboot");
  if (!passing.empty())
    return passed("the IOMMU is in passthrough mode", name_list(passing));
  if (untyped != 0) {
    for (const char* word : {"iommu=pt", "iommu.passthrough=1"})
      if ((" " + command_line + " ").find(std::string(word) + " ") != std::string::npos)
        return passed("the kernel command line sets IOMMU passthrough",
                      file_evidence("/proc/cmdline", command_line));
    return skipped("the kernel does not report the type of the devices' IOMMU groups",
                   file_evidence("/proc/cmdline", command_line));
  }
  if (!sysroot.is_directory("/sys/class/iommu") && !sysroot.live())
    return skipped("the copied tree has no data about IOMMUs", absent("/sys/class/iommu"));
  return passed("no IOMMU is active for these devices",
                "/sys/bus/pci/devices/*/iommu_group: not there for any GPU or NIC");
}

CheckResult relaxed_ordering(const CheckContext& context) {
  const DeviceControls controls = read_device_controls(context);
  if (auto result = without_device_controls(context, controls))
    return *result;
  std::vector<std::string> strict;
  for (const auto& [address, value] : controls.values)
    if ((value & devctl_relaxed_ordering) == 0)
      strict.push_back(to_string(address));
  const std::string evidence =
      fmt::format("{}: PCIe device control is {:#06x}", config_path(controls.values.begin()->first),
                  controls.values.begin()->second);
  if (strict.empty())
    return passed("relaxed ordering is enabled on every NIC", evidence);
  return warned(
      "relaxed ordering is off on " + name_list(strict), evidence,
      fmt::format("for d in {}; do setpci -s $d CAP_EXP+8.w=0010:0010; done", join(strict, " ")));
}

CheckResult pcie_max_read_request(const CheckContext& context) {
  constexpr int min_bytes =
      512; // the reset value; a smaller one costs the NIC one request per 128 or 256 B
  const DeviceControls controls = read_device_controls(context);
  if (auto result = without_device_controls(context, controls))
    return *result;
  std::vector<std::string> low;
  std::vector<std::string> all;
  for (const auto& [address, value] : controls.values) {
    const int bytes = max_read_request_bytes(value);
    all.push_back(to_string(address) + " " + std::to_string(bytes));
    if (bytes < min_bytes)
      low.push_back(to_string(address));
  }
  const std::string evidence = "PCIe device control: read requests of " + name_list(all) + " bytes";
  if (low.empty())
    return passed("the maximum read request size of every NIC is at least 512 bytes", evidence);
  return warned(
      "small maximum read request size on " + name_list(low), evidence,
      fmt::format("for d in {}; do setpci -s $d CAP_EXP+8.w=5000:7000; done  # 4096 bytes",
                  join(low, " ")));
}

} // namespace shmemctl::doctor
