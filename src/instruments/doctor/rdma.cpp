// Checks of RDMA devices and their ports and GIDs.
#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <set>
#include <unistd.h>

#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/settings.h"
#include "src/instruments/doctor/support.h"
#include "src/model/topo/advice/advice.h"
#include "src/model/topo/mapping/request.h"
#include "src/model/topo/node.h"

namespace shmemctl::doctor {

namespace {

constexpr int full_mtu_bytes = 4096;
// The kernel reserves 96 bytes of a netdev's MTU for a RoCE packet's longest headers (GRH, UDP,
// BTH, XRC and atomic extensions, ICRC) and rounds down to 256, 512, ... 4096.
constexpr int roce_overhead_bytes = 96;

std::string port_path(const RdmaPort& at, const std::string& file) {
  return "/sys/class/infiniband/" + at.nic->name + "/ports/" + std::to_string(at.port->number) +
         "/" + file;
}

std::string bring_up_command(const RdmaPort& at) {
  if (at.port->link_layer.value == LinkLayer::ethernet && at.port->netdev)
    return "ip link set dev " + *at.port->netdev + " up && ethtool " + *at.port->netdev;
  if (at.port->state.value == PortState::init || at.port->state.value == PortState::armed)
    return "sminfo -C " + at.nic->name + " || systemctl start opensm  # a subnet manager is needed";
  return "ibstat " + at.nic->name + " " + std::to_string(at.port->number) +
         "  # check cable, switch port and subnet manager";
}

/// The module that creates an RDMA device for a NIC with this driver; "" if none is known.
std::string rdma_module_of(const Nic& nic) {
  const std::string driver = nic.driver.value.value_or("");
  return driver == "mlx5_core" ? "mlx5_ib" : driver == "mlx4_core" ? "mlx4_ib" : "";
}

/// NICs that have no RDMA device though their driver supports one, and whose card has no RDMA
/// device on another function either (the second function of a bond has none).
std::vector<const Nic*> nics_without_rdma(const Node& node) {
  std::vector<const Nic*> result;
  const std::vector<PciAddress> rdma = rdma_addresses(node);
  for (const Nic& nic : node.nics) {
    if (nic.rdma.value.value_or(true) || nic.pci < 0 || rdma_module_of(nic).empty())
      continue;
    const PciAddress& address = node.pci[static_cast<std::size_t>(nic.pci)].address;
    const bool same_card = std::any_of(rdma.begin(), rdma.end(), [&](const PciAddress& other) {
      return other.domain == address.domain && other.bus == address.bus;
    });
    if (!same_card)
      result.push_back(&nic);
  }
  return result;
}

struct PortMtu {
  int bytes = 0;
  std::string evidence;
};

/// A port's MTU: reported by the port, or derived from the netdev's MTU (RoCE).
std::optional<PortMtu> port_mtu(const Sysroot& sysroot, const RdmaPort& at) {
  const NicPort& port = *at.port;
  if (port.active_mtu_bytes)
    return PortMtu{*port.active_mtu_bytes,
                   fmt::format("{}: active MTU {}", at.name(), *port.active_mtu_bytes)};
  if (port.link_layer.value != LinkLayer::ethernet || !port.netdev)
    return std::nullopt;
  const std::string path = "/sys/class/net/" + *port.netdev + "/mtu";
  const std::optional<long long> netdev_bytes = sysroot.read_integer(path);
  if (!netdev_bytes)
    return std::nullopt;
  int bytes = 256;
  while (bytes < full_mtu_bytes && bytes * 2 + roce_overhead_bytes <= *netdev_bytes)
    bytes *= 2;
  return PortMtu{bytes,
                 fmt::format("{}: {}, so {} carries {}", path, *netdev_bytes, at.name(), bytes)};
}

std::string mtu_fix(const RdmaPort& at) {
  if (at.port->link_layer.value == LinkLayer::ethernet && at.port->netdev)
    return "ip link set dev " + *at.port->netdev +
           " mtu 9000  # the switch ports must allow it as well";
  return "sminfo -C " + at.nic->name +
         "  # on the subnet manager: mtu=5 (4096) for the partition in partitions.conf";
}

} // namespace

std::optional<int> port_mtu_bytes(const Sysroot& sysroot, const RdmaPort& at) {
  const std::optional<PortMtu> mtu = port_mtu(sysroot, at);
  return mtu ? std::optional(mtu->bytes) : std::nullopt;
}

CheckResult rdma_devices(const CheckContext& context) {
  const std::vector<const Nic*> devices = rdma_nics(context.node);
  const std::vector<const Nic*> without = nics_without_rdma(context.node);
  std::vector<std::string> names;
  names.reserve(devices.size());
  for (const Nic* nic : devices)
    names.push_back(nic->name);
  if (!without.empty()) {
    std::vector<std::string> lacking;
    lacking.reserve(without.size());
    for (const Nic* nic : without)
      lacking.push_back(nic->name + " (" + *nic->driver + ")");
    const std::string reason = "RDMA is not available on " + name_list(lacking);
    const std::string evidence =
        "/sys/class/infiniband: " + (names.empty() ? std::string("empty") : name_list(names));
    const std::string fix = "modprobe " + rdma_module_of(*without.front());
    return names.empty() ? failed(reason, evidence, fix) : warned(reason, evidence, fix);
  }
  if (devices.empty())
    return skipped("no RDMA device on this node");
  return passed(std::to_string(names.size()) + " RDMA devices",
                "/sys/class/infiniband: " + name_list(names));
}

CheckResult rdma_port_state(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  std::vector<std::string> inactive;
  std::string fix;
  std::string evidence;
  std::size_t active = 0;
  for (const RdmaPort& at : rdma_ports(context.node)) {
    if (!at.port->state)
      continue;
    if (*at.port->state == PortState::active) {
      ++active;
      continue;
    }
    inactive.push_back(at.name() + " " + to_string(*at.port->state));
    if (fix.empty()) {
      fix = bring_up_command(at);
      evidence = file_evidence(port_path(at, "state"), to_string(*at.port->state));
    }
  }
  if (active == 0 && inactive.empty())
    return skipped("no port reports its state", "/sys/class/infiniband/*/ports/*/state: unknown");
  if (inactive.empty())
    return passed(fmt::format("all {} ports are active", active),
                  "/sys/class/infiniband/*/ports/*/state: ACTIVE");
  if (active == 0)
    return failed("no port is active: " + name_list(inactive), evidence, fix);
  return warned("not active: " + name_list(inactive), evidence, fix);
}

namespace {

/// Active ports by their link layer, where it is known.
std::map<LinkLayer, std::vector<std::string>> ports_by_layer(const Node& node) {
  std::map<LinkLayer, std::vector<std::string>> ports;
  for (const RdmaPort& at : active_rdma_ports(node))
    if (at.port->link_layer)
      ports[*at.port->link_layer].push_back(at.name());
  return ports;
}

/// topo's finding for this environment that a PE would use a NIC of another network than the
/// fabric's. Its fix was tried together with topo's others, so doctor adds none of its own.
std::optional<Finding> pe_off_fabric(const CheckContext& context) {
  const MappingRequest request = mapping_request(Options(context.environment), context.node);
  for (const Finding& finding : check_mapping(context.node, map_nics(context.node, request)))
    if (finding.id == "nic-off-fabric")
      return finding;
  return std::nullopt;
}

CheckResult as_result(const Finding& finding, const std::string& evidence) {
  return finding.severity == Severity::error ? failed(finding.message, evidence, finding.fix)
                                             : warned(finding.message, evidence, finding.fix);
}

} // namespace

CheckResult rdma_link_layer(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  const std::map<LinkLayer, std::vector<std::string>> ports = ports_by_layer(context.node);
  if (ports.empty())
    return skipped("no active port reports its link layer",
                   "/sys/class/infiniband/*/ports/*/link_layer: unknown");
  std::vector<std::string> groups;
  groups.reserve(ports.size());
  for (const auto& [layer, names] : ports)
    groups.push_back(std::string(to_string(layer)) + " " + name_list(names));
  const std::string evidence = "/sys/class/infiniband/*/ports/*/link_layer: " + join(groups, "; ");
  if (ports.size() == 1)
    return passed(std::string("all active ports are ") + to_string(ports.begin()->first), evidence);
  if (const std::optional<Finding> off = pe_off_fabric(context))
    return as_result(*off, evidence);
  std::vector<std::string> fabric;
  for (const RdmaPort& at : fabric_rdma_ports(context))
    fabric.push_back(at.name());
  return passed(
      "link layers are mixed, and no PE uses a port outside the compute fabric, which is " +
          name_list(fabric),
      evidence);
}

CheckResult rdma_rate(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  std::set<double> rates_Gbps;
  for (const RdmaPort& at : active_rdma_ports(context.node))
    if (at.port->rate_Gbps)
      rates_Gbps.insert(*at.port->rate_Gbps);
  if (rates_Gbps.empty())
    return skipped("no active port reports its rate",
                   "/sys/class/infiniband/*/ports/*/rate: unknown");
  const std::string evidence =
      fmt::format("/sys/class/infiniband/*/ports/*/rate: {:g} Gb/s to {:g} Gb/s",
                  *rates_Gbps.begin(), *rates_Gbps.rbegin());
  if (rates_Gbps.size() == 1)
    return passed(fmt::format("all active ports run at {:g} Gb/s", *rates_Gbps.begin()), evidence);
  for (const Finding& finding : check_node(context.node))
    if (finding.id == "port-slow")
      return as_result(finding, evidence);
  if (ports_by_layer(context.node).size() == 1) // if the layers differ, rdma-link-layer reports it
    if (const std::optional<Finding> off = pe_off_fabric(context))
      return as_result(*off, evidence);
  return passed("no port is slower than its peers of the same model and purpose", evidence);
}

CheckResult rdma_mtu(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  std::vector<std::string> small;
  std::string evidence;
  std::string fix;
  std::size_t matching = 0;
  for (const RdmaPort& at : fabric_rdma_ports(context)) {
    const std::optional<PortMtu> mtu = port_mtu(context.sysroot, at);
    if (!mtu)
      continue;
    ++matching;
    if (evidence.empty())
      evidence = mtu->evidence;
    if (mtu->bytes >= full_mtu_bytes)
      continue;
    small.push_back(fmt::format("{} {}", at.name(), mtu->bytes));
    if (fix.empty()) {
      fix = mtu_fix(at);
      evidence = mtu->evidence;
    }
  }
  if (matching == 0)
    return skipped("no active port reports its MTU; sysfs has it for RoCE only",
                   "/sys/class/net/*/mtu: no netdev of an active RoCE port");
  if (small.empty())
    return passed("the active MTU is 4096 on every port that reports it", evidence);
  return warned("the active MTU is below 4096: " + name_list(small), evidence, fix);
}

CheckResult rdma_uverbs(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  const Sysroot& sysroot = context.sysroot;
  const std::string folder = "/sys/class/infiniband_verbs";
  std::map<std::string, std::string> node_of; // RDMA device -> "uverbs0"
  for (const std::string& name : sysroot.list(folder))
    if (const auto device = sysroot.read_line(fmt::format("{}/{}/ibdev", folder, name)))
      node_of.emplace(*device, name);
  if (node_of.empty())
    return failed("programs cannot use the RDMA devices: ib_uverbs is not loaded",
                  folder + ": empty or not there", "modprobe ib_uverbs");
  if (!has_device_nodes(sysroot))
    return skipped("the copied tree has no device nodes", absent("/dev"));
  const bool container = container_evidence(sysroot, context.environment).has_value();
  std::vector<std::string> problems;
  std::string fix = "modprobe ib_uverbs && udevadm trigger --subsystem-match=infiniband_verbs";
  for (const Nic* nic : rdma_nics(context.node)) {
    const auto found = node_of.find(nic->name);
    const std::string path =
        "/dev/infiniband/" + (found == node_of.end() ? "uverbs*" : found->second);
    if (found == node_of.end() || !sysroot.exists(path)) {
      problems.push_back(nic->name + ": no " + path);
    } else if (sysroot.live() && ::access(path.c_str(), R_OK | W_OK) != 0) {
      problems.push_back(nic->name + ": no permission to open " + path);
      fix = "chmod 666 /dev/infiniband/uverbs*";
    }
  }
  if (container)
    fix = "docker run --device=/dev/infiniband --cap-add=IPC_LOCK";
  if (!problems.empty())
    return failed("RDMA devices cannot be opened: " + name_list(problems),
                  "/dev/infiniband: " + name_list(sysroot.list("/dev/infiniband")), fix);
  if (!sysroot.exists("/dev/infiniband/rdma_cm"))
    return warned("the RDMA connection manager is missing: libfabric's verbs provider needs it",
                  absent("/dev/infiniband/rdma_cm"), container ? fix : "modprobe rdma_ucm");
  return passed("every RDMA device can be opened",
                "/dev/infiniband: " + name_list(sysroot.list("/dev/infiniband")));
}

namespace {

constexpr const char* index_variables[] = {"NVSHMEM_IB_GID_INDEX", "NCCL_IB_GID_INDEX",
                                           "UCX_IB_GID_INDEX"};

bool is_roce_v2(const Gid& gid) {
  return gid.type.value.value_or("").find("v2") != std::string::npos;
}
/// Whether the GID is an IPv4-mapped address, "::ffff:a.b.c.d", which sysfs writes in full.
bool is_ipv4(const Gid& gid) {
  return starts_with(gid.value, "0000:0000:0000:0000:0000:ffff:");
}
bool is_link_local(const Gid& gid) {
  return starts_with(lower(gid.value), "fe80:");
}

std::vector<RdmaPort> roce_ports(const CheckContext& context) {
  std::vector<RdmaPort> ports = fabric_rdma_ports(context);
  std::erase_if(
      ports, [](const RdmaPort& at) { return at.port->link_layer.value != LinkLayer::ethernet; });
  return ports;
}

std::optional<std::string> no_roce_port(const CheckContext& context) {
  if (auto reason = no_rdma_device(context.node))
    return reason;
  if (roce_ports(context).empty())
    return "no active RoCE port in the compute fabric of this node";
  return std::nullopt;
}

std::set<int> ipv4_v2_indices(const RdmaPort& at) {
  std::set<int> result;
  for (const Gid& gid : at.port->gids)
    if (is_roce_v2(gid) && is_ipv4(gid))
      result.insert(gid.index);
  return result;
}

std::string gids_path(const RdmaPort& at) {
  return fmt::format("/sys/class/infiniband/{}/ports/{}/gids", at.nic->name, at.port->number);
}

std::string gids_text(const RdmaPort& at) {
  std::vector<std::string> entries;
  for (const Gid& gid : at.port->gids)
    entries.push_back(fmt::format("{} is {} ({})", gid.index, gid.value,
                                  gid.type.value.value_or("type unknown")));
  return gids_path(at) + ": " + (entries.empty() ? "no entry" : name_list(entries));
}

std::string add_address(const RdmaPort& at) {
  return "ip address add 192.0.2.1/24 dev " + at.port->netdev.value.value_or("<netdev>") +
         "  # with this port's own address";
}

/// What a port's GID table offers to QPs.
enum class GidTable { ipv4_v2, ipv6_v2, v1_only, link_local_only, empty, types_unknown };

GidTable classify(const RdmaPort& at) {
  const std::vector<Gid>& gids = at.port->gids;
  if (gids.empty())
    return GidTable::empty;
  if (!ipv4_v2_indices(at).empty())
    return GidTable::ipv4_v2;
  auto any = [&](auto predicate) { return std::any_of(gids.begin(), gids.end(), predicate); };
  if (any([](const Gid& gid) { return is_roce_v2(gid) && !is_link_local(gid); }))
    return GidTable::ipv6_v2;
  if (any([](const Gid& gid) { return !gid.type; }))
    return GidTable::types_unknown;
  if (!any(is_roce_v2))
    return GidTable::v1_only;
  return GidTable::link_local_only;
}

/// The variables that set a GID index, with their values.
std::string index_settings(const Environment& environment) {
  std::vector<std::string> settings;
  for (const char* name : index_variables)
    if (const auto found = environment.find(name); found != environment.end())
      settings.push_back(std::string(name) + "=" + found->second);
  return join(settings, " ");
}

/// The indices with which QPs of other hosts can reach the port: RoCE v2 on IPv4 or, if there are
/// none, on IPv6 that is not link-local.
std::set<int> reachable_indices(const RdmaPort& at) {
  std::set<int> result = ipv4_v2_indices(at);
  if (result.empty())
    for (const Gid& gid : at.port->gids)
      if (is_roce_v2(gid) && !is_link_local(gid))
        result.insert(gid.index);
  return result;
}

bool knows_types(const RdmaPort& at) {
  return std::all_of(at.port->gids.begin(), at.port->gids.end(),
                     [](const Gid& gid) { return gid.type.known(); });
}

/// The first variable whose GID index is not a routable RoCE v2 GID of a port, with all such ports;
/// empty if there is none.
std::optional<std::string> wrong_setting(const Environment& environment,
                                         const std::vector<RdmaPort>& ports) {
  for (const char* name : index_variables) {
    const auto found = environment.find(name);
    const auto index = found != environment.end() ? parse_integer(found->second) : std::nullopt;
    if (!index || *index < 0)
      continue;
    std::vector<std::string> wrong;
    for (const RdmaPort& at : ports)
      if (knows_types(at) && reachable_indices(at).count(static_cast<int>(*index)) == 0)
        wrong.push_back(at.name());
    if (!wrong.empty())
      return fmt::format("{}={} is not a routable RoCE v2 GID on {}", name, *index,
                         name_list(wrong));
  }
  return std::nullopt;
}

/// The value that both NVSHMEM's and NCCL's variable have; "" if they differ or one is not set.
std::string set_for_both(const Environment& environment, const std::string& name) {
  const auto nvshmem = environment.find("NVSHMEM_" + name);
  const auto nccl = environment.find("NCCL_" + name);
  const bool both = nvshmem != environment.end() && nccl != environment.end();
  return both && nvshmem->second == nccl->second ? nvshmem->second : "";
}

/// Whether variables tell the libraries to select the kind of GID that the port has.
bool is_asked_for(const Environment& environment, GidTable table) {
  if (table == GidTable::v1_only)
    return set_for_both(environment, "IB_ROCE_VERSION_NUM") == "1";
  return table == GidTable::ipv6_v2 && set_for_both(environment, "IB_ADDR_FAMILY") == "AF_INET6";
}

std::string export_index(int index) {
  return fmt::format("export NVSHMEM_IB_GID_INDEX={0} NCCL_IB_GID_INDEX={0} UCX_IB_GID_INDEX={0}",
                     index);
}

constexpr const char* leave_to_library =
    "unset UCX_IB_GID_INDEX; export NVSHMEM_IB_GID_INDEX=-1 NCCL_IB_GID_INDEX=-1  # chosen per "
    "device";

/// Ports with the same fault.
struct GidFault {
  CheckStatus status = CheckStatus::fail;
  std::string words; ///< printed after the ports' names
  std::string fix;   ///< fix for the first port
  std::vector<RdmaPort> ports;

  std::string sentence() const {
    std::vector<std::string> names;
    for (const RdmaPort& at : ports)
      names.push_back(at.name());
    return name_list(names) + (names.size() == 1 ? " has " : " have ") + words;
  }
};

/// The fault of a port's GID table; empty if NVSHMEM and NCCL find an address there, or if its
/// types are unknown.
std::optional<GidFault> gid_fault(const RdmaPort& at, bool all_v1) {
  switch (classify(at)) {
  case GidTable::link_local_only:
    return GidFault{
        CheckStatus::fail, "only link-local GIDs, which are not routable", add_address(at), {}};
  case GidTable::v1_only:
    return GidFault{CheckStatus::fail,
                    "no RoCE v2 GID: RoCE v1 is not routable, and NVSHMEM requires v2",
                    all_v1
                        ? "export NVSHMEM_IB_ROCE_VERSION_NUM=1 NCCL_IB_ROCE_VERSION_NUM=1  # or, "
                          "with mlx4: options mlx4_core roce_mode=2"
                        : fmt::format("cma_roce_mode -d {} -p {} -m 2  # or, with mlx4: options "
                                      "mlx4_core roce_mode=2; the other ports have RoCE v2",
                                      at.nic->name, at.port->number),
                    {}};
  case GidTable::empty:
    return GidFault{CheckStatus::fail, "no GID at all", add_address(at), {}};
  case GidTable::ipv6_v2:
    return GidFault{CheckStatus::warning,
                    "RoCE v2 GIDs on IPv6 only; NVSHMEM and NCCL select IPv4",
                    "export NVSHMEM_IB_ADDR_FAMILY=AF_INET6 NCCL_IB_ADDR_FAMILY=AF_INET6  # or: " +
                        add_address(at),
                    {}};
  case GidTable::ipv4_v2:
  case GidTable::types_unknown:
    break;
  }
  return std::nullopt;
}

/// The faults, each with all its ports, the more severe first.
std::vector<GidFault> gid_faults(const std::vector<RdmaPort>& ports,
                                 const Environment& environment) {
  const bool all_v1 = std::all_of(ports.begin(), ports.end(), [](const RdmaPort& at) {
    return classify(at) == GidTable::v1_only;
  });
  std::vector<GidFault> faults;
  for (const RdmaPort& at : ports) {
    std::optional<GidFault> fault = gid_fault(at, all_v1);
    if (!fault || is_asked_for(environment, classify(at)))
      continue;
    auto known = std::find_if(faults.begin(), faults.end(), [&fault](const GidFault& other) {
      return other.words == fault->words;
    });
    if (known == faults.end())
      known = faults.insert(faults.end(), std::move(*fault));
    known->ports.push_back(at);
  }
  std::stable_sort(faults.begin(), faults.end(), [](const GidFault& left, const GidFault& right) {
    return left.status > right.status;
  });
  return faults;
}

} // namespace

std::set<int> gid_indices_in_use(const RdmaPort& at, const Environment& environment) {
  if (at.port->link_layer.value != LinkLayer::ethernet)
    return {0};
  std::set<int> indices = reachable_indices(at);
  for (const char* name : index_variables) {
    const auto found = environment.find(name);
    const auto index = found != environment.end() ? parse_integer(found->second) : std::nullopt;
    for (const Gid& gid : at.port->gids)
      if (index && gid.index == *index)
        indices.insert(gid.index);
  }
  if (indices.empty())
    for (const Gid& gid : at.port->gids)
      indices.insert(gid.index);
  return indices;
}

std::string gid_kinds(const NicPort& port) {
  std::vector<std::string> kinds;
  for (const Gid& gid : port.gids)
    kinds.push_back(fmt::format("{} {} {}", gid.index, gid.type.value.value_or("of unknown type"),
                                is_ipv4(gid)         ? "IPv4"
                                : is_link_local(gid) ? "link-local"
                                                     : "IPv6"));
  return kinds.empty() ? "none" : name_list(kinds);
}

CheckResult rdma_gid_table(const CheckContext& context) {
  if (const auto reason = no_roce_port(context))
    return skipped(*reason);
  const std::vector<RdmaPort> ports = roce_ports(context);
  const std::vector<GidFault> faults = gid_faults(ports, context.environment);
  if (!faults.empty()) {
    std::vector<std::string> sentences, tables, fixes;
    for (const GidFault& fault : faults) {
      sentences.push_back(fault.sentence());
      fixes.push_back(faults.size() == 1 ? fault.fix
                                         : fault.ports.front().name() + ": " + fault.fix);
      for (const RdmaPort& at : fault.ports)
        tables.push_back(gids_text(at));
    }
    const std::string reason = join(sentences, "; ");
    return faults.front().status == CheckStatus::fail
               ? failed(reason, join(tables, "; "), join(fixes, "; "))
               : warned(reason, join(tables, "; "), join(fixes, "; "));
  }
  bool all_ipv4 = true;
  for (const RdmaPort& at : ports) {
    if (classify(at) == GidTable::types_unknown)
      return skipped("the GID types are unknown", gids_text(at));
    all_ipv4 = all_ipv4 && classify(at) == GidTable::ipv4_v2;
  }
  return passed(all_ipv4 ? fmt::format("all {} RoCE ports have an IPv4 RoCE v2 GID", ports.size())
                         : "the libraries are configured for the GIDs that the RoCE ports have",
                gids_text(ports.front()));
}

CheckResult rdma_gid_index(const CheckContext& context) {
  if (const auto reason = no_roce_port(context))
    return skipped(*reason);
  const std::vector<RdmaPort> ports = roce_ports(context);
  std::set<int> first_indices;
  std::optional<std::set<int>> common;
  std::vector<std::string> by_port;
  std::optional<RdmaPort> without;
  for (const RdmaPort& at : ports) {
    if (ipv4_v2_indices(at).empty())
      without = without ? without : at;
    const std::set<int> indices = reachable_indices(at);
    if (!indices.empty())
      first_indices.insert(*indices.begin());
    by_port.push_back(indices.empty() ? at.name() + " none"
                                      : fmt::format("{} {}", at.name(), fmt::join(indices, "/")));
    std::set<int> shared;
    if (common)
      std::set_intersection(common->begin(), common->end(), indices.begin(), indices.end(),
                            std::inserter(shared, shared.end()));
    common = common ? shared : indices;
  }
  const std::string settings = index_settings(context.environment);
  const std::string evidence = "/sys/class/infiniband/*/ports/*/gids: index of RoCE v2" +
                               std::string(without ? "" : " IPv4") + ": " + name_list(by_port) +
                               (settings.empty() ? "" : "; environment: " + settings);
  const std::string fix = common->empty() ? leave_to_library : export_index(*common->begin());
  // Reported even if a port has no suitable index at all: a wrong one is wrong in any case.
  if (const auto wrong = wrong_setting(context.environment, ports))
    return failed(*wrong, evidence, fix);
  if (without)
    return skipped(without->name() + " has no RoCE v2 IPv4 address: see rdma-gid-table",
                   gids_text(*without));
  if (first_indices.size() > 1 && set_for_both(context.environment, "IB_GID_INDEX") == "-1")
    return passed("GID indices differ, and the libraries choose one for each device", evidence);
  if (first_indices.size() > 1)
    return warned("the RoCE v2 IPv4 address has different GID indices: " + name_list(by_port),
                  evidence, fix);
  return passed(
      fmt::format("GID index {} is RoCE v2 on IPv4 on every port", *first_indices.begin()),
      evidence);
}

} // namespace shmemctl::doctor
