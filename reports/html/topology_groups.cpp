#include "reports/html/topology_groups.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "reports/json_view.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

/// No node has more; a made-up document may.
constexpr std::size_t most_devices = 512;

/// Sets that are joined pair by pair.
class DisjointSets {
public:
  explicit DisjointSets(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t i) {
    while (parent_[i] != i)
      i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  /// The smaller root stays: sets keep the order of their first members.
  void join(std::size_t i, std::size_t j) {
    i = find(i);
    j = find(j);
    parent_[std::max(i, j)] = std::min(i, j);
  }

private:
  std::vector<std::size_t> parent_;
};

std::vector<NodeDevice> devices_of(const json& topology) {
  static const json none;
  std::map<std::string, const json*> nics;
  for (const char* list : {"nics", "other_nics"})
    for (const json& nic : view::list(topology, list))
      nics.emplace(view::text(nic, "name"), &nic);
  std::map<std::string, const json*> gpus;
  for (const json& gpu : view::list(topology, "gpus"))
    gpus.emplace("GPU" + view::text(gpu, "index"), &gpu);
  std::vector<NodeDevice> devices;
  for (const json& label : view::list(view::member(topology, "distances"), "labels")) {
    const std::string name = view::scalar(label).value_or("?");
    const bool is_gpu =
        starts_with(name, "GPU") && parse_integer(name.substr(3)).has_value() && !nics.count(name);
    const auto& facts = is_gpu ? gpus : nics;
    const auto found = facts.find(name);
    devices.push_back({name, is_gpu, found == facts.end() ? &none : found->second});
  }
  return devices;
}

/// "NUMA 0" if those of the devices that say so agree.
std::string domain_label(const std::vector<NodeDevice>& devices,
                         const std::vector<std::size_t>& members) {
  std::set<std::string> nodes;
  for (const std::size_t member : members)
    if (const auto numa = view::scalar(view::member(*devices[member].facts, "numa")))
      nodes.insert(*numa);
  if (nodes.empty())
    return "NUMA node unknown";
  return "NUMA " + join({nodes.begin(), nodes.end()}, ", ");
}

} // namespace

std::string distance_word(const json& topology, std::size_t i, std::size_t j) {
  const json& matrix = view::list(view::member(topology, "distances"), "matrix");
  if (i >= matrix.size() || !matrix[i].is_array() || j >= matrix[i].size() ||
      !matrix[i][j].is_string())
    return "";
  return matrix[i][j].get<std::string>();
}

NodeGroups group_devices(const json& topology) {
  NodeGroups out{devices_of(topology), {}};
  const std::size_t count = out.devices.size();
  if (count > most_devices)
    return {};
  DisjointSets switches(count), domains(count);
  std::map<std::string, std::size_t> first_of_numa;
  for (std::size_t i = 0; i < count; ++i) {
    if (const auto numa = view::scalar(view::member(*out.devices[i].facts, "numa")))
      domains.join(i, first_of_numa.emplace(*numa, i).first->second);
    for (std::size_t j = 0; j < i; ++j) {
      const std::string word = distance_word(topology, i, j);
      const bool below_a_switch = word == "PIX" || word == "PXB";
      if (below_a_switch)
        switches.join(i, j);
      if (below_a_switch || word == "PHB" || word == "NODE")
        domains.join(i, j);
    }
  }
  std::map<std::size_t, std::map<std::size_t, std::vector<std::size_t>>> tree;
  for (std::size_t i = 0; i < count; ++i)
    tree[domains.find(i)][switches.find(i)].push_back(i);
  for (const auto& [domain_root, groups] : tree) {
    Domain domain;
    SwitchGroup loose;
    loose.loose = true;
    std::vector<std::size_t> all;
    for (const auto& [root, members] : groups) {
      SwitchGroup group;
      SwitchGroup& into = members.size() == 1 ? loose : group;
      for (const std::size_t member : members)
        (out.devices[member].is_gpu ? into.gpus : into.nics).push_back(member);
      all.insert(all.end(), members.begin(), members.end());
      if (members.size() > 1)
        domain.groups.push_back(std::move(group));
    }
    if (!loose.gpus.empty() || !loose.nics.empty())
      domain.groups.push_back(std::move(loose));
    domain.label = domain_label(out.devices, all);
    out.domains.push_back(std::move(domain));
  }
  return out;
}

} // namespace shmemctl::html
