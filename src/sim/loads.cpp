#include "src/sim/loads.h"

#include <algorithm>

#include <fmt/format.h>

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
      wiring->places.push_back({static_cast<std::uint32_t>(node),
                                static_cast<std::uint32_t>(wiring->ways.size()),
                                static_cast<std::uint32_t>(ports.size())});
      for (const int port : ports)
        wiring->ways.push_back({static_cast<std::uint32_t>(nic(node, port)),
                                static_cast<std::uint32_t>(leaf_of(node, port))});
    }
  return wiring;
}

void Loads::cross(const Way& from, const Way& to, double size_bytes) {
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
  const Place& source = wiring_->places[as_size(from)];
  const Place& target = wiring_->places[as_size(to)];
  if (source.node == target.node) {
    link_out[as_size(from)] += size_bytes;
    link_in[as_size(to)] += size_bytes;
    return;
  }
  const Way* const ours = wiring_->ways.data() + source.first;
  const Way* const theirs = wiring_->ways.data() + target.first;
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

std::optional<Bottleneck> Loads::slowest() const {
  const Cluster& cluster = *group_.cluster;
  std::optional<Bottleneck> slowest;
  const auto look = [&slowest](Resource resource, std::size_t index, double bytes, double rate) {
    if (!(bytes > 0) || !(rate > 0))
      return;
    const double time_us = bytes / rate * 1e-3;
    if (!slowest || time_us > slowest->time_us)
      slowest = Bottleneck{resource, static_cast<int>(index), bytes, rate, time_us};
  };
  for (int node = 0; node < group_.nodes; ++node) {
    const std::vector<double>& rates = cluster.kind(group_.first_node + node).rate_GBps;
    for (std::size_t port = 0; port < ports_; ++port) {
      const std::size_t i = nic(node, static_cast<int>(port));
      look(Resource::nic_out, i, out[i], rates[port]);
      look(Resource::nic_in, i, in[i], rates[port]);
    }
  }
  for (std::size_t leaf = 0; leaf < up.size(); ++leaf) {
    look(Resource::uplink, leaf, up[leaf], uplinks_[leaf]);
    look(Resource::downlink, leaf, down[leaf], uplinks_[leaf]);
  }
  for (std::size_t rank = 0; rank < link_out.size(); ++rank) {
    const double rate = cluster.link_GBps[rank % as_size(pes_)];
    look(Resource::gpu_out, rank, link_out[rank], rate);
    look(Resource::gpu_in, rank, link_in[rank], rate);
  }
  return slowest;
}

} // namespace shmemctl::sim
