// RoCE addresses: which GID a queue pair will use, and whether it is the same everywhere.
#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>

#include "src/base/text.h"
#include "src/doctor/checks.h"
#include "src/doctor/support.h"

namespace shmemctl::doctor {

namespace {

constexpr const char* index_variables[] = {"NVSHMEM_IB_GID_INDEX", "NCCL_IB_GID_INDEX",
                                           "UCX_IB_GID_INDEX"};

bool is_roce_v2(const Gid& gid) {
  return gid.type.value.value_or("").find("v2") != std::string::npos;
}
/// "::ffff:a.b.c.d" as sysfs writes it in full.
bool is_ipv4(const Gid& gid) {
  return starts_with(gid.value, "0000:0000:0000:0000:0000:ffff:");
}
bool is_link_local(const Gid& gid) {
  return starts_with(lower(gid.value), "fe80:");
}

std::vector<RdmaPort> roce_ports(const Node& node) {
  std::vector<RdmaPort> ports = active_rdma_ports(node);
  std::erase_if(
      ports, [](const RdmaPort& at) { return at.port->link_layer.value != LinkLayer::ethernet; });
  return ports;
}

std::optional<std::string> no_roce_port(const Node& node) {
  if (auto reason = no_rdma_device(node))
    return reason;
  if (roce_ports(node).empty())
    return "no active RoCE port on this node";
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

/// A port's GID table as queue pairs will see it.
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

/// Variables that fix an index, with what they are set to.
std::string index_settings(const Environment& environment) {
  std::vector<std::string> settings;
  for (const char* name : index_variables)
    if (const auto found = environment.find(name); found != environment.end())
      settings.push_back(std::string(name) + "=" + found->second);
  return join(settings, " ");
}

/// The first variable that names an index which some port does not have; nothing if all fit.
std::optional<std::string> wrong_setting(const Environment& environment,
                                         const std::vector<RdmaPort>& ports) {
  for (const char* name : index_variables) {
    const auto found = environment.find(name);
    const auto index = found != environment.end() ? parse_integer(found->second) : std::nullopt;
    if (!index || *index < 0)
      continue;
    for (const RdmaPort& at : ports) {
      const std::set<int> good = ipv4_v2_indices(at);
      if (std::none_of(good.begin(), good.end(), [&](int each) { return each == *index; }))
        return fmt::format("{}={} is no RoCE v2 IPv4 address on {}", name, *index, at.name());
    }
  }
  return std::nullopt;
}

std::string export_index(int index) {
  return fmt::format("export NVSHMEM_IB_GID_INDEX={0} NCCL_IB_GID_INDEX={0} UCX_IB_GID_INDEX={0}",
                     index);
}

constexpr const char* leave_to_library =
    "unset UCX_IB_GID_INDEX; export NVSHMEM_IB_GID_INDEX=-1 NCCL_IB_GID_INDEX=-1  # chosen per "
    "device";

} // namespace

CheckResult rdma_gid_table(const CheckContext& context) {
  if (const auto reason = no_roce_port(context.node))
    return skipped(*reason);
  const std::vector<RdmaPort> ports = roce_ports(context.node);
  std::size_t good = 0;
  std::optional<RdmaPort> ipv6;
  for (const RdmaPort& at : ports) {
    switch (classify(at)) {
    case GidTable::ipv4_v2:
      ++good;
      break;
    case GidTable::ipv6_v2:
      ipv6 = at;
      break;
    case GidTable::link_local_only:
      return failed(at.name() + " has only link-local addresses, which other subnets do not reach",
                    gids_text(at), add_address(at));
    case GidTable::v1_only:
      return failed(at.name() + " has no RoCE v2 address: RoCE v1 is not routed, and NVSHMEM asks "
                                "for v2",
                    gids_text(at),
                    "export NVSHMEM_IB_ROCE_VERSION_NUM=1 NCCL_IB_ROCE_VERSION_NUM=1  # or, with "
                    "mlx4: options mlx4_core roce_mode=2");
    case GidTable::empty:
      return failed(at.name() + " has no address at all", gids_text(at), add_address(at));
    case GidTable::types_unknown:
      break;
    }
  }
  if (ipv6)
    return warned(ipv6->name() + " has RoCE v2 only on IPv6; NVSHMEM and NCCL look for IPv4",
                  gids_text(*ipv6),
                  "export NVSHMEM_IB_ADDR_FAMILY=AF_INET6 NCCL_IB_ADDR_FAMILY=AF_INET6  # or: " +
                      add_address(*ipv6));
  if (good < ports.size())
    return skipped("the types of the GIDs are not told", gids_text(ports.front()));
  return passed(fmt::format("all {} RoCE ports have a RoCE v2 address on IPv4", good),
                gids_text(ports.front()));
}

CheckResult rdma_gid_index(const CheckContext& context) {
  if (const auto reason = no_roce_port(context.node))
    return skipped(*reason);
  const std::vector<RdmaPort> ports = roce_ports(context.node);
  std::set<int> first_indices;
  std::optional<std::set<int>> common;
  std::vector<std::string> by_port;
  for (const RdmaPort& at : ports) {
    const std::set<int> indices = ipv4_v2_indices(at);
    if (indices.empty())
      return skipped(at.name() + " has no RoCE v2 IPv4 address: see rdma-gid-table", gids_text(at));
    first_indices.insert(*indices.begin());
    by_port.push_back(fmt::format("{} {}", at.name(), fmt::join(indices, "/")));
    std::set<int> shared;
    if (common)
      std::set_intersection(common->begin(), common->end(), indices.begin(), indices.end(),
                            std::inserter(shared, shared.end()));
    common = common ? shared : indices;
  }
  const std::string settings = index_settings(context.environment);
  const std::string evidence =
      "/sys/class/infiniband/*/ports/*/gids: index of RoCE v2 IPv4: " + name_list(by_port) +
      (settings.empty() ? "" : "; environment: " + settings);
  const std::string fix = common->empty() ? leave_to_library : export_index(*common->begin());
  if (const auto wrong = wrong_setting(context.environment, ports))
    return failed(*wrong, evidence, fix);
  if (first_indices.size() > 1)
    return warned("the RoCE v2 IPv4 address has different GID indices: " + name_list(by_port),
                  evidence, fix);
  return passed(
      fmt::format("GID index {} is RoCE v2 on IPv4 on every port", *first_indices.begin()),
      evidence);
}

} // namespace shmemctl::doctor
