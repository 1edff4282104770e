#include "src/model/sim/takeover.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace shmemctl::sim {

namespace {

/// Each cluster numbers its ports in its own way, so ports are matched by name.
using PortName = std::pair<std::string, int>;

PortName name_of(const Port& port) {
  return {port.device, port.number};
}

/// The ports of each local PE of this node.
std::vector<std::set<PortName>> ports_of_pes(const Cluster& cluster, int node) {
  std::vector<std::set<PortName>> ports;
  for (const std::vector<int>& used : cluster.kind(node).ports_of_pe) {
    std::set<PortName>& names = ports.emplace_back();
    for (const int port : used)
      names.insert(name_of(cluster.ports[static_cast<std::size_t>(port)]));
  }
  return ports;
}

/// How the PEs of one dead port of one node continue.
Takeover takeover_of(const PortName& dead, const std::vector<std::set<PortName>>& before,
                     const std::vector<std::set<PortName>>& after) {
  Takeover takeover;
  takeover.device = dead.first;
  takeover.port = dead.second;
  std::map<PortName, Substitute> by;
  for (std::size_t pe = 0; pe < before.size(); ++pe) {
    if (!before[pe].contains(dead))
      continue;
    takeover.pes.push_back(static_cast<int>(pe));
    for (const PortName& name : after[pe])
      by[name].pes.push_back(static_cast<int>(pe));
  }
  for (auto& [name, substitute] : by) {
    substitute.device = name.first;
    substitute.port = name.second;
    for (std::size_t pe = 0; pe < before.size(); ++pe)
      if (!before[pe].contains(dead) && before[pe].contains(name) && after[pe].contains(name))
        substitute.shares.push_back(static_cast<int>(pe));
    takeover.by.push_back(std::move(substitute));
  }
  return takeover;
}

bool same_but_nodes(const Takeover& a, const Takeover& b) {
  const auto same = [](const Substitute& left, const Substitute& right) {
    return left.device == right.device && left.port == right.port && left.pes == right.pes &&
           left.shares == right.shares;
  };
  return a.device == b.device && a.port == b.port && a.pes == b.pes &&
         std::equal(a.by.begin(), a.by.end(), b.by.begin(), b.by.end(), same);
}

/// The ports of the cluster that this change kills.
std::vector<PortName> killed_by(const NicChange& change, const Cluster& cluster) {
  std::vector<PortName> names;
  for (const Port& port : cluster.ports)
    if (port.device == change.device && change.port.value_or(port.number) == port.number)
      names.push_back(name_of(port));
  return names;
}

} // namespace

std::vector<Takeover> takeovers(const Cluster& before, const Cluster& after,
                                const std::vector<NicChange>& changes) {
  std::vector<Takeover> all;
  for (const NicChange& change : changes) {
    if (change.rate_share > 0)
      continue;
    for (const PortName& dead : killed_by(change, before)) {
      const std::size_t first = all.size();
      // Nodes whose kinds before and after are the same have the same result.
      std::map<std::pair<int, int>, std::size_t> known;
      for (int node = 0; node < after.nodes; ++node) {
        if (!change.concerns(node))
          continue;
        const auto at = static_cast<std::size_t>(node);
        const auto [kinds, is_new] =
            known.try_emplace({before.kind_of_node[at], after.kind_of_node[at]}, all.size());
        if (is_new) {
          Takeover one = takeover_of(dead, ports_of_pes(before, node), ports_of_pes(after, node));
          const auto alike =
              std::find_if(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(),
                           [&one](const Takeover& other) { return same_but_nodes(one, other); });
          kinds->second = static_cast<std::size_t>(alike - all.begin());
          if (alike == all.end())
            all.push_back(std::move(one));
        }
        all[kinds->second].nodes.push_back(node);
      }
    }
  }
  return all;
}

} // namespace shmemctl::sim
