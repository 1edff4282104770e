#include "src/instruments/bringup/job_networks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "src/base/archive.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl {

namespace {

/// Nodes from `first` to `second`, inclusive.
using NodeRange = std::pair<std::int32_t, std::int32_t>;

/// A NetworkUse as it is sent to other PEs.
struct SentUse {
  struct SentLink {
    std::string first, second;
    std::int32_t first_port = 1, second_port = 1;
  };
  std::string transport;
  std::vector<SentLink> links;
  std::vector<NodeRange> targets;
};

void serialize(Archive& archive, SentUse::SentLink& link) {
  archive(link.first, link.first_port, link.second, link.second_port);
}

void serialize(Archive& archive, SentUse& use) {
  archive(use.transport, use.links, use.targets);
}

std::vector<NodeRange> ranges_of(std::vector<int> nodes) {
  std::sort(nodes.begin(), nodes.end());
  std::vector<NodeRange> ranges;
  for (const int node : nodes)
    if (!ranges.empty() && node <= ranges.back().second + 1)
      ranges.back().second = node;
    else
      ranges.emplace_back(node, node);
  return ranges;
}

const Transport* transport_named(const Runtime& runtime, const std::string& name) {
  for (const TransportEntry& entry : runtime.transports())
    if (entry.transport && entry.transport->name() == name)
      return entry.transport.get();
  return nullptr;
}

/// The transports whose NICs carry what this PE sends to `pe`.
std::vector<const Transport*> carriers_to(Runtime& runtime, int pe) {
  std::vector<const Transport*> carriers;
  const auto slot = static_cast<std::size_t>(pe);
  if (const int index = runtime.transport_index_by_pe()[slot]; index >= 0)
    carriers.push_back(runtime.transports()[static_cast<std::size_t>(index)].transport.get());
  if (PeGpu* const gpu = runtime.gpu();
      gpu && gpu->paths_by_pe().at(slot).path == DevicePath::ibgda)
    if (const Transport* const ibgda = transport_named(runtime, "ibgda"))
      carriers.push_back(ibgda);
  return carriers;
}

bool is_port(std::int32_t number) {
  return number >= 0 && number <= std::numeric_limits<std::uint16_t>::max();
}

NetworkPort port_of(const HcaPort& nic) {
  return {nic.device, nic.port};
}

} // namespace

std::vector<NetworkUse> networks_in_use(Runtime& runtime) {
  using TransportLinks = std::pair<std::string, std::set<NetworkLink>>;
  const Placement& placement = runtime.placement();
  std::map<TransportLinks, std::set<int>> targets;
  for (int pe = 0; pe < runtime.n_pes(); ++pe) {
    const int node = placement.node[static_cast<std::size_t>(pe)];
    if (node == placement.my_node())
      continue;
    for (const Transport* const carrier : carriers_to(runtime, pe)) {
      if (!carrier)
        continue;
      std::set<NetworkLink> links;
      for (const NicPair& nics : carrier->nics_to(pe))
        links.insert({port_of(nics.local), port_of(nics.remote)});
      targets[{carrier->name(), std::move(links)}].insert(node);
    }
  }
  std::vector<NetworkUse> uses;
  for (const auto& [used, nodes] : targets)
    uses.push_back({placement.my_node(),
                    used.first,
                    {used.second.begin(), used.second.end()},
                    {nodes.begin(), nodes.end()}});
  return uses;
}

std::string networks_message(const std::vector<NetworkUse>& mine) {
  std::vector<SentUse> sent;
  for (const NetworkUse& use : mine) {
    SentUse out;
    out.transport = use.transport;
    for (const NetworkLink& link : use.links)
      out.links.push_back(
          {link.first.device, link.second.device, link.first.port, link.second.port});
    out.targets = ranges_of(use.targets);
    sent.push_back(std::move(out));
  }
  return to_bytes(sent);
}

std::vector<NetworkRow> merge_networks(const std::vector<std::string>& messages,
                                       const std::vector<int>& node_of_pe, int n_nodes) {
  std::vector<NetworkUse> uses;
  for (std::size_t pe = 0; pe < messages.size(); ++pe)
    for (SentUse& sent : value_of_pe<std::vector<SentUse>>(messages[pe], pe, "networks")) {
      NetworkUse use;
      use.node = node_of_pe.at(pe);
      use.transport = std::move(sent.transport);
      for (const SentUse::SentLink& link : sent.links) {
        if (!is_port(link.first_port) || !is_port(link.second_port))
          throw malformed_message(pe, "networks");
        use.links.push_back({{link.first, link.first_port}, {link.second, link.second_port}});
      }
      for (const NodeRange& range : sent.targets) {
        if (range.first < 0 || range.second >= n_nodes || range.second < range.first ||
            use.transport.empty())
          throw malformed_message(pe, "networks");
        for (int node = range.first; node <= range.second; ++node)
          use.targets.push_back(node);
      }
      uses.push_back(std::move(use));
    }
  return network_rows(uses, n_nodes);
}

std::vector<NetworkRow> gather_networks(Runtime& runtime) {
  const Placement& placement = runtime.placement();
  if (placement.n_nodes() < 2)
    return {};
  const std::vector<std::string> messages =
      runtime.gather_text_on_first(networks_message(networks_in_use(runtime)));
  if (runtime.pe() != 0)
    return {};
  return merge_networks(messages, placement.node, placement.n_nodes());
}

} // namespace shmemctl
