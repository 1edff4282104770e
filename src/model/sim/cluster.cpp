// A cluster of equal nodes, the switches between them, what-if changes, and findings about it.
#include "src/model/sim/cluster.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/model/topo/advice/advice.h"
#include "src/model/topo/mapping/ports.h"

namespace shmemctl::sim {

namespace {

constexpr long long max_number = 1 << 30;

Error unreadable(const char* flag, const std::string& text, const std::string& problem,
                 const std::string& example) {
  return {ExitCode::usage, std::string(flag) + " " + printable(text), "", problem,
          "write " + example};
}

std::optional<int> whole(const std::string& text) {
  const std::optional<long long> value = parse_integer(text);
  return value && *value >= 0 && *value < max_number ? std::optional(static_cast<int>(*value))
                                                     : std::nullopt;
}

/// "17/mlx5_3:1"
NicChange parse_port_name(const char* flag, const std::string& text, const std::string& whole_text,
                          const std::string& example) {
  NicChange change;
  std::string device = text;
  if (const std::size_t slash = device.find('/'); slash != std::string::npos) {
    change.node = whole(device.substr(0, slash));
    if (!change.node)
      throw unreadable(flag, whole_text, "the part before / is not a node index", example);
    device.erase(0, slash + 1);
  }
  if (const std::size_t colon = device.find(':'); colon != std::string::npos) {
    change.port = whole(device.substr(colon + 1));
    if (!change.port)
      throw unreadable(flag, whole_text, "the part after : is not a port number", example);
    device.resize(colon);
  }
  if (device.empty())
    throw unreadable(flag, whole_text, "no NIC given", example);
  change.device = device;
  return change;
}

} // namespace

NicChange parse_dead_nic(const std::string& text) {
  return parse_port_name("--kill-nic", text, text,
                         "mlx5_3 for all nodes, or 17/mlx5_3 for node 17");
}

NicChange parse_slow_nic(const std::string& text) {
  const char* const flag = "--slow-nic";
  const std::string example = "17/mlx5_3=0.5: half of its rate is left";
  const std::size_t sign = text.rfind('=');
  const auto share = sign == std::string::npos ? std::nullopt : parse_number(text.substr(sign + 1));
  if (!share || !(*share > 0) || *share > 1)
    throw unreadable(flag, text, "the remaining fraction of the rate must be above 0 and at most 1",
                     example);
  NicChange change = parse_port_name(flag, text.substr(0, sign), text, example);
  change.rate_share = *share;
  return change;
}

ExpertMove parse_expert_move(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  const auto expert = whole(parts[0]);
  const auto rank = parts.size() == 2 ? whole(parts[1]) : std::nullopt;
  if (!expert || !rank)
    throw unreadable("--move-expert", text, "not EXPERT:RANK", "5:12: expert 5 to rank 12");
  return {*expert, *rank};
}

void require_known(const NicChange& change, const Node& node, int nodes) {
  const std::string what = to_string(change);
  if (change.node && *change.node >= nodes)
    throw Error(ExitCode::usage, what, "",
                fmt::format("no node {}: the cluster has nodes 0 to {}", *change.node, nodes - 1),
                fmt::format("pass node {}, the nearest one", nodes - 1));
  std::vector<std::string> names;
  for (const Nic& nic : node.nics) {
    if (nic.name != change.device) {
      names.push_back(nic.name);
      continue;
    }
    const bool has_port = nic.ports.empty()
                              ? change.port.value_or(1) == 1
                              : !change.port || std::any_of(nic.ports.begin(), nic.ports.end(),
                                                            [&](const NicPort& port) {
                                                              return port.number == *change.port;
                                                            });
    if (!has_port)
      throw Error(ExitCode::usage, what, "",
                  fmt::format("no port {} on {}", *change.port, change.device),
                  fmt::format("pass {}:{}, which exists", change.device,
                              nic.ports.empty() ? 1 : nic.ports.back().number));
    return;
  }
  throw Error(ExitCode::usage, what, "", "no NIC " + printable(change.device) + " in the topology",
              did_you_mean(change.device, names) + "choose from " + printable(join(names, ", ")));
}

std::string to_string(const NicChange& change) {
  const std::string port_name = (change.node ? std::to_string(*change.node) + "/" : "") +
                                printable(change.device) +
                                (change.port ? ":" + std::to_string(*change.port) : "");
  return change.rate_share > 0 ? fmt::format("--slow-nic {}={:g}", port_name, change.rate_share)
                               : "--kill-nic " + port_name;
}

namespace {

Error unfit(const std::string& problem, const std::string& fix) {
  return {ExitCode::usage, "cluster", "", problem, fix};
}

void check(const Node& node, const ClusterRequest& request) {
  if (request.nodes < 1 || request.nodes > max_nodes)
    throw unfit(fmt::format("it has {1} nodes, but must have 1 to {0}", max_nodes, request.nodes),
                fmt::format("use the nearest legal value: --nodes {}",
                            std::clamp(request.nodes, 1, max_nodes)));
  if (request.fabric.leaf_nodes < 1)
    throw unfit(fmt::format("a leaf switch has {} nodes, but must have 1 or more",
                            request.fabric.leaf_nodes),
                "use the nearest legal value: --leaf-nodes 1");
  if (!(request.fabric.oversubscription >= 1))
    throw unfit(fmt::format("oversubscription, the downlink divided by the uplink bandwidth of a "
                            "leaf switch, is {}, but must be 1 or more",
                            request.fabric.oversubscription),
                "use the nearest legal value: --oversubscription 1");
  if (request.mapping.gpus.empty() || node.gpus.empty())
    throw unfit("the topology has no GPU",
                "pass the topology of a node with GPUs with --from FILE");
  if (usable_ports(node).empty())
    throw unfit("the topology has no usable NIC", "pass the topology of a node with RDMA NICs with "
                                                  "--from FILE; shmemctl topo shows its contents");
}

/// The node with its dead ports set to down.
Node without_dead(Node node, const std::vector<NicChange>& changes) {
  for (const NicChange& change : changes)
    for (Nic& nic : node.nics) {
      if (change.rate_share > 0 || nic.name != change.device)
        continue;
      if (nic.ports.empty())
        nic.ports.emplace_back();
      for (NicPort& port : nic.ports)
        if (port.number == change.port.value_or(port.number))
          port.state = known(PortState::down, "what if");
    }
  return node;
}

double rate_of(const Node& node, const NicUse& use, const std::optional<double>& given_Gbps) {
  if (given_Gbps)
    return *given_Gbps / 8;
  const NicPort* const port = find_port(node, use.nic, use.port);
  return port != nullptr && port->rate_Gbps ? *port->rate_Gbps / 8 : 0;
}

/// The fabric's ports. rail_of() adds storage, management and excluded ones that a PE uses.
std::vector<Port> ports_of(const Node& node, const ClusterRequest& request) {
  std::vector<Port> ports;
  for (const NicUse& use : wanted_ports(node, request.mapping))
    ports.push_back({use.nic, use.port, node.nics[static_cast<std::size_t>(use.nic)].name,
                     rate_of(node, use, request.nic_Gbps), true});
  return ports;
}

int rail_of(std::vector<Port>& ports, const Node& node, const NicUse& use,
            const ClusterRequest& request) {
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (ports[i].nic == use.nic && ports[i].number == use.port)
      return static_cast<int>(i);
  ports.push_back({use.nic, use.port, node.nics[static_cast<std::size_t>(use.nic)].name,
                   rate_of(node, use, request.nic_Gbps), false});
  return static_cast<int>(ports.size()) - 1;
}

NodeKind kind_of(const Node& node, const Mapping& mapping, const ClusterRequest& request,
                 const std::vector<NicChange>& changes, std::vector<Port>& ports) {
  NodeKind kind;
  for (const PeMapping& pe : mapping.pes) {
    std::vector<int> used;
    for (int i = 0; i < std::min(pe.used, static_cast<int>(pe.nics.size())); ++i)
      used.push_back(rail_of(ports, node, pe.nics[static_cast<std::size_t>(i)], request));
    if (used.empty())
      throw unfit(fmt::format("PE {} of a node has no NIC{}{}", pe.pe,
                              pe.reason.empty() ? "" : ": ", pe.reason),
                  "leave at least one NIC for each PE; shmemctl topo shows the mapping");
    for (const int port : used)
      if (!(ports[static_cast<std::size_t>(port)].rate_GBps > 0))
        throw unfit(fmt::format("the topology has no rate for {}",
                                to_string(ports[static_cast<std::size_t>(port)])),
                    "pass the rate in Gb/s, such as --nic-gbits 400");
    kind.ports_of_pe.push_back(std::move(used));
  }
  for (const Port& port : ports) {
    double rate = port.rate_GBps;
    for (const NicChange& change : changes)
      if (change.device == port.device && change.port.value_or(port.number) == port.number)
        rate *= change.rate_share;
    kind.rate_GBps.push_back(rate);
  }
  return kind;
}

double link_rate(const Gpu& gpu) {
  double rate = 0;
  for (const GpuLink& link : gpu.links)
    if (link.target != LinkTarget::cpu && link.bandwidth_GBps)
      rate += *link.bandwidth_GBps * link.count;
  return rate;
}

std::vector<double> link_rates(const Node& node, const ClusterRequest& request) {
  std::vector<double> rates;
  const std::vector<int>& gpus = request.mapping.gpus;
  for (const int gpu : gpus) {
    const double rate = request.link_GBps.value_or(
        gpu < 0 ? 0 : link_rate(node.gpus[static_cast<std::size_t>(gpu)]));
    rates.push_back(rate / static_cast<double>(std::count(gpus.begin(), gpus.end(), gpu)));
  }
  return rates;
}

} // namespace

const char* to_string(FabricKind kind) {
  return kind == FabricKind::rail ? "rail" : "fat-tree";
}

std::string to_string(const Port& port) {
  return port.device + "/" + std::to_string(port.number);
}

int Cluster::fabric_ports() const {
  return static_cast<int>(
      std::count_if(ports.begin(), ports.end(), [](const Port& port) { return port.on_fabric; }));
}

Cluster build_cluster(const Node& node, const ClusterRequest& request) {
  check(node, request);
  for (const NicChange& change : request.changes)
    require_known(change, node, request.nodes);
  Cluster cluster;
  cluster.nodes = request.nodes;
  cluster.node_pes = static_cast<int>(request.mapping.gpus.size());
  cluster.fabric = request.fabric;
  cluster.ports = ports_of(node, request);
  cluster.link_GBps = link_rates(node, request);
  cluster.mapping = map_nics(node, request.mapping);
  std::map<std::vector<std::size_t>, int> kinds{{{}, 0}};
  cluster.kinds.push_back(kind_of(node, cluster.mapping, request, {}, cluster.ports));
  for (int n = 0; n < request.nodes; ++n) {
    std::vector<std::size_t> concerning;
    std::vector<NicChange> changes;
    for (std::size_t i = 0; i < request.changes.size(); ++i)
      if (request.changes[i].concerns(n)) {
        concerning.push_back(i);
        changes.push_back(request.changes[i]);
      }
    const auto [kind, is_new] = kinds.try_emplace(concerning, static_cast<int>(kinds.size()));
    if (is_new) {
      const Node changed = without_dead(node, changes);
      const Mapping mapping = map_nics(changed, request.mapping);
      cluster.kinds.push_back(kind_of(changed, mapping, request, changes, cluster.ports));
    }
    cluster.kind_of_node.push_back(kind->second);
  }
  for (NodeKind& kind : cluster.kinds) // ports that only a later kind uses
    for (std::size_t i = kind.rate_GBps.size(); i < cluster.ports.size(); ++i)
      kind.rate_GBps.push_back(cluster.ports[i].rate_GBps);
  return cluster;
}

Findings cluster_findings(const Node& node, const Cluster& cluster) {
  Findings findings = check_mapping(node, cluster.mapping);
  std::erase_if(findings, [](const Finding& finding) { return finding.id != "nic-off-fabric"; });
  return findings;
}

} // namespace shmemctl::sim
