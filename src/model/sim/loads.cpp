// Bytes by NIC and switch for traffic patterns and MoE.
#include "src/model/sim/loads.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <tuple>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl::sim {

namespace {

std::size_t as_size(int value) {
  return static_cast<std::size_t>(value);
}

void add_all(std::vector<double>& to, const std::vector<double>& from, double times) {
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] += times * from[i];
}

} // namespace

const char* to_string(Resource resource) {
  switch (resource) {
  case Resource::nic_out:
    return "nic-out";
  case Resource::nic_in:
    return "nic-in";
  case Resource::uplink:
    return "uplink";
  case Resource::downlink:
    return "downlink";
  case Resource::gpu_out:
    return "gpu-out";
  case Resource::gpu_in:
    return "gpu-in";
  }
  return "";
}

Loads::Loads(const Group& group)
    : group_(group), ports_(group.cluster->ports.size()), pes_(group.cluster->node_pes),
      first_block_(group.first_node / group.cluster->fabric.leaf_nodes) {
  const Cluster& cluster = *group.cluster;
  const int last_block = (group.first_node + group.nodes - 1) / cluster.fabric.leaf_nodes;
  const bool rail = cluster.fabric.kind == FabricKind::rail;
  const std::size_t leaves = as_size(last_block - first_block_ + 1) * (rail ? ports_ : 1);
  out.assign(as_size(group.nodes) * ports_, 0);
  in = out;
  up.assign(leaves, 0);
  down = up;
  link_out.assign(as_size(group.ranks()), 0);
  link_in = link_out;
  uplinks_.assign(leaves, 0);
  for (int node = 0; node < group.nodes; ++node)
    for (std::size_t port = 0; port < ports_; ++port)
      if (cluster.ports[port].on_fabric)
        uplinks_[leaf_of(node, static_cast<int>(port))] +=
            cluster.ports[port].rate_GBps / cluster.fabric.oversubscription;
  wiring_ = wire();
}

std::size_t Loads::leaf_of(int node, int port) const {
  const Fabric& fabric = group_.cluster->fabric;
  const std::size_t block = as_size((group_.first_node + node) / fabric.leaf_nodes - first_block_);
  return fabric.kind == FabricKind::rail ? block * ports_ + as_size(port) : block;
}

int Loads::leaf_number(std::size_t leaf) const {
  const bool rail = group_.cluster->fabric.kind == FabricKind::rail;
  return first_block_ * (rail ? static_cast<int>(ports_) : 1) + static_cast<int>(leaf);
}

std::shared_ptr<const Loads::Wiring> Loads::wire() const {
  auto wiring = std::make_shared<Wiring>();
  for (int node = 0; node < group_.nodes; ++node)
    for (const std::vector<int>& ports :
         group_.cluster->kind(group_.first_node + node).ports_of_pe) {
      wiring->ranges.push_back({static_cast<std::uint32_t>(node),
                                static_cast<std::uint32_t>(wiring->rank_nics.size()),
                                static_cast<std::uint32_t>(ports.size())});
      for (const int port : ports)
        wiring->rank_nics.push_back({static_cast<std::uint32_t>(nic(node, port)),
                                     static_cast<std::uint32_t>(leaf_of(node, port))});
    }
  return wiring;
}

void Loads::cross(const RankNic& from, const RankNic& to, double size_bytes) {
  out[from.nic] += size_bytes;
  in[to.nic] += size_bytes;
  if (from.leaf == to.leaf)
    return;
  up[from.leaf] += size_bytes;
  down[to.leaf] += size_bytes;
}

void Loads::add(int from, int to, double size_bytes) {
  if (from == to || size_bytes == 0)
    return;
  const NicRange& source = wiring_->ranges[as_size(from)];
  const NicRange& target = wiring_->ranges[as_size(to)];
  if (source.node == target.node) {
    link_out[as_size(from)] += size_bytes;
    link_in[as_size(to)] += size_bytes;
    return;
  }
  const RankNic* const ours = wiring_->rank_nics.data() + source.first;
  const RankNic* const theirs = wiring_->rank_nics.data() + target.first;
  if (source.count == target.count) {
    const double share = size_bytes / source.count;
    for (std::uint32_t i = 0; i < source.count; ++i)
      cross(ours[i], theirs[i], share);
    return;
  }
  const double share = size_bytes / (double{1} * source.count * target.count);
  for (std::uint32_t our = 0; our < source.count; ++our)
    for (std::uint32_t their = 0; their < target.count; ++their)
      cross(ours[our], theirs[their], share);
}

void Loads::add(const Loads& other, double times) {
  add_all(out, other.out, times);
  add_all(in, other.in, times);
  add_all(up, other.up, times);
  add_all(down, other.down, times);
  add_all(link_out, other.link_out, times);
  add_all(link_in, other.link_in, times);
}

void Loads::clear() {
  for (std::vector<double>* all : {&out, &in, &up, &down, &link_out, &link_in})
    std::fill(all->begin(), all->end(), 0);
}

std::string Loads::leaf_name(std::size_t leaf) const {
  const Cluster& cluster = *group_.cluster;
  if (cluster.fabric.kind == FabricKind::fat_tree)
    return fmt::format("leaf switch {}", leaf_number(leaf));
  return fmt::format("leaf switch {} of rail {}", first_block_ + static_cast<int>(leaf / ports_),
                     to_string(cluster.ports[leaf % ports_]));
}

std::string Loads::name_of(Resource resource, std::size_t index) const {
  const Cluster& cluster = *group_.cluster;
  switch (resource) {
  case Resource::nic_out:
  case Resource::nic_in:
    return fmt::format("node {} {} {}", group_.first_node + static_cast<int>(index / ports_),
                       to_string(cluster.ports[index % ports_]),
                       resource == Resource::nic_out ? "out" : "in");
  case Resource::uplink:
    return leaf_name(index) + " up";
  case Resource::downlink:
    return leaf_name(index) + " down";
  case Resource::gpu_out:
  case Resource::gpu_in:
    return fmt::format("GPU links of rank {} {}",
                       group_.first_node * pes_ + static_cast<int>(index),
                       resource == Resource::gpu_out ? "out" : "in");
  }
  return "";
}

template <class Visit>
void Loads::visit_busy(Visit&& visit) const {
  const Cluster& cluster = *group_.cluster;
  const auto consider = [&visit](Resource resource, std::size_t index, double bytes, double rate) {
    if (bytes > 0 && rate > 0)
      visit(Bottleneck{resource, static_cast<int>(index), bytes, rate, bytes / rate * 1e-3});
  };
  for (int node = 0; node < group_.nodes; ++node) {
    const std::vector<double>& rates = cluster.kind(group_.first_node + node).rate_GBps;
    for (std::size_t port = 0; port < ports_; ++port) {
      const std::size_t i = nic(node, static_cast<int>(port));
      consider(Resource::nic_out, i, out[i], rates[port]);
      consider(Resource::nic_in, i, in[i], rates[port]);
    }
  }
  for (std::size_t leaf = 0; leaf < up.size(); ++leaf) {
    consider(Resource::uplink, leaf, up[leaf], uplinks_[leaf]);
    consider(Resource::downlink, leaf, down[leaf], uplinks_[leaf]);
  }
  for (std::size_t rank = 0; rank < link_out.size(); ++rank) {
    const double rate = cluster.link_GBps[rank % as_size(pes_)];
    consider(Resource::gpu_out, rank, link_out[rank], rate);
    consider(Resource::gpu_in, rank, link_in[rank], rate);
  }
}

std::optional<Bottleneck> Loads::slowest() const {
  std::optional<Bottleneck> slowest;
  visit_busy([&slowest](const Bottleneck& one) {
    if (!slowest || one.time_us > slowest->time_us)
      slowest = one;
  });
  return slowest;
}

std::vector<Bottleneck> Loads::as_slow_as(double time_us) const {
  std::vector<Bottleneck> all;
  visit_busy([&](const Bottleneck& one) {
    if (one.time_us >= time_us)
      all.push_back(one);
  });
  return all;
}

namespace {

constexpr std::array<const char*, 5> names{"moe", "all-to-all", "put-ring", "put-pairs",
                                           "put-incast"};

/// All ranks of one node to all of another, as the loads of two nodes of these kinds.
Loads node_to_node(const Cluster& cluster, int from, int to, bool same_block, double size_bytes,
                   Cluster& two) {
  two = cluster;
  two.nodes = 2;
  two.kind_of_node = {cluster.kind_of_node[static_cast<std::size_t>(from)],
                      cluster.kind_of_node[static_cast<std::size_t>(to)]};
  two.fabric.leaf_nodes = same_block ? 2 : 1;
  Loads loads(Group{&two, 0, 2});
  for (int source = 0; source < two.node_pes; ++source)
    for (int target = 0; target < two.node_pes; ++target)
      loads.add(source, two.node_pes + target, size_bytes);
  return loads;
}

/// Adds the loads of each pair of nodes. They depend only on the kinds of the two nodes and on
/// whether one block of leaf switches has both, so each such combination is computed only once.
void add_all_to_all(double size_bytes, Loads& loads) {
  const Group& group = loads.group();
  const Cluster& cluster = *group.cluster;
  const std::size_t ports = cluster.ports.size();
  const bool rail = cluster.fabric.kind == FabricKind::rail;
  const std::size_t leaves = rail ? ports : 1; // leaf switches of a block
  const int first_block = group.first_node / cluster.fabric.leaf_nodes;
  std::map<std::tuple<int, int, bool>, Loads> known;
  Cluster two;
  for (int from = 0; from < group.nodes; ++from)
    for (int to = 0; to < group.nodes; ++to) {
      if (from == to)
        continue;
      const int a = group.first_node + from, b = group.first_node + to;
      const int block_a = a / cluster.fabric.leaf_nodes, block_b = b / cluster.fabric.leaf_nodes;
      const bool same = block_a == block_b;
      const std::tuple key{cluster.kind_of_node[static_cast<std::size_t>(a)],
                           cluster.kind_of_node[static_cast<std::size_t>(b)], same};
      auto found = known.find(key);
      if (found == known.end())
        found = known.emplace(key, node_to_node(cluster, a, b, same, size_bytes, two)).first;
      const Loads& pair = found->second;
      for (std::size_t port = 0; port < ports; ++port) {
        loads.out[loads.nic(from, 0) + port] += pair.out[port];
        loads.in[loads.nic(to, 0) + port] += pair.in[ports + port];
      }
      const std::size_t up = static_cast<std::size_t>(block_a - first_block) * leaves;
      const std::size_t down = static_cast<std::size_t>(block_b - first_block) * leaves;
      for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
        loads.up[up + leaf] += pair.up[leaf];
        loads.down[down + leaf] += pair.down[(same ? 0 : leaves) + leaf];
      }
    }
  for (int source = 0; source < group.ranks(); ++source)
    for (int target = source / cluster.node_pes * cluster.node_pes;
         target < (source / cluster.node_pes + 1) * cluster.node_pes; ++target)
      loads.add(source, target, size_bytes);
}

} // namespace

const char* to_string(Pattern pattern) {
  return names.at(static_cast<std::size_t>(pattern));
}

std::vector<std::string> pattern_names() {
  return {names.begin(), names.end()};
}

Pattern parse_pattern(const std::string& name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (name == names[i])
      return static_cast<Pattern>(i);
  throw Error(ExitCode::usage, "--pattern", "", "unknown pattern \"" + printable(name) + "\"",
              did_you_mean(name, pattern_names()) + "choose one of " + join(pattern_names(), ", "));
}

void add_pattern(Pattern pattern, double size_bytes, Loads& loads) {
  const Group& group = loads.group();
  const int ranks = group.ranks(), pes = group.cluster->node_pes;
  if (pattern == Pattern::put_pairs && group.nodes % 2 != 0)
    throw Error(ExitCode::usage, "--pattern put-pairs", "",
                fmt::format("an odd number of nodes ({}) cannot be paired", group.nodes),
                fmt::format("pass --nodes {}", group.nodes + 1));
  if (pattern == Pattern::all_to_all)
    return add_all_to_all(size_bytes, loads);
  for (int rank = 0; rank < ranks; ++rank) {
    const int shift = pattern == Pattern::put_ring ? pes : ranks / 2;
    loads.add(rank, pattern == Pattern::put_incast ? 0 : (rank + shift) % ranks, size_bytes);
  }
}

const char* to_string(MoeMode mode) {
  switch (mode) {
  case MoeMode::hybrid:
    return "hybrid";
  case MoeMode::high_throughput:
    return "ht";
  case MoeMode::low_latency:
    return "ll";
  }
  return "";
}

moe::RankRouting MoeTraffic::choices_of(int rank, std::uint64_t step) const {
  if (replay)
    return (*replay)[as_size(rank)];
  moe::RoutingRequest request = routing;
  request.step = step;
  return moe::make_rank_routing(shape, request, rank);
}

int MoeTraffic::tokens_of(int rank) const {
  return replay ? (*replay)[as_size(rank)].tokens() : moe::tokens_of_rank(shape, routing, rank);
}

SourceCounts::SourceCounts(const MoeTraffic& traffic)
    : to_node(as_size(traffic.nodes())), to_rank(as_size(traffic.shape.n_ranks)),
      choices(to_rank.size()) {}

void SourceCounts::clear() {
  for (std::vector<double>* all : {&to_node, &to_rank, &choices})
    std::fill(all->begin(), all->end(), 0);
}

void MoeLoads::clear() {
  dispatch.clear();
  combine.clear();
}

void MoeLoads::add(const MoeLoads& other, double times) {
  dispatch.add(other.dispatch, times);
  combine.add(other.combine, times);
}

void count(const MoeTraffic& traffic, const moe::RankRouting& routing, SourceCounts& counts) {
  // The last token that was counted for a rank or node, so that each counts it once.
  std::vector<std::int32_t> last_of_rank(counts.to_rank.size(), -1);
  std::vector<std::int32_t> last_of_node(counts.to_node.size(), -1);
  for (std::int32_t token = 0; token < routing.tokens(); ++token) {
    const std::int32_t* const chosen = routing.choices(token);
    for (std::int32_t k = 0; k < routing.top_k; ++k) {
      if (chosen[k] < 0)
        continue;
      const std::size_t rank = as_size(traffic.rank_of_expert[as_size(chosen[k])]);
      const std::size_t node = rank / as_size(traffic.node_ranks);
      ++counts.choices[rank];
      counts.to_rank[rank] += last_of_rank[rank] != token ? 1 : 0;
      counts.to_node[node] += last_of_node[node] != token ? 1 : 0;
      last_of_rank[rank] = last_of_node[node] = token;
    }
  }
}

void add_crossing_rows(const MoeTraffic& traffic, int source, const std::vector<double>& to_node,
                       MoeLoads& loads) {
  const double there = traffic.shape.row_bytes(traffic.format);
  const double back = traffic.shape.row_bytes(moe::Format::bf16);
  const int own = source / traffic.node_ranks;
  for (int node = 0; node < traffic.nodes(); ++node) {
    const double rows = to_node[as_size(node)];
    if (node == own || rows == 0)
      continue;
    const int rail = node * traffic.node_ranks + source % traffic.node_ranks;
    loads.dispatch.add(source, rail, rows * there);
    loads.combine.add(rail, source, rows * back);
  }
}

void add_rows(const MoeTraffic& traffic, int source, const SourceCounts& counts, MoeLoads& loads) {
  const double there = traffic.shape.row_bytes(traffic.format);
  const double back = traffic.shape.row_bytes(moe::Format::bf16);
  const bool hybrid = traffic.mode == MoeMode::hybrid;
  const bool low = traffic.mode == MoeMode::low_latency;
  if (hybrid)
    add_crossing_rows(traffic, source, counts.to_node, loads);
  for (int rank = 0; rank < traffic.shape.n_ranks; ++rank) {
    const double rows = counts.to_rank[as_size(rank)];
    if (rows == 0)
      continue;
    const double choices = counts.choices[as_size(rank)];
    const int by =
        hybrid ? rank / traffic.node_ranks * traffic.node_ranks + source % traffic.node_ranks
               : source;
    loads.dispatch.add(by, rank, (low && traffic.per_choice ? choices : rows) * there);
    loads.combine.add(rank, by, (low && !traffic.partial ? choices : rows) * back);
  }
}

} // namespace shmemctl::sim
