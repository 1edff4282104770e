#include "src/sim/patterns.h"

#include <array>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl::sim {

namespace {

constexpr std::array<const char*, 5> names{"moe", "all-to-all", "put-ring", "put-pairs",
                                           "put-incast"};

/// All ranks of one node to all of another, as loads of two nodes of these kinds.
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

/// By pair of nodes: all pairs of the same kinds and leaf switches move the same.
void add_all_to_all(double size_bytes, Loads& loads) {
  const Group& group = loads.group();
  const Cluster& cluster = *group.cluster;
  const std::size_t ports = cluster.ports.size();
  const bool rail = cluster.fabric.kind == FabricKind::rail;
  const std::size_t leaves = rail ? ports : 1; // of a block
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
  const auto near = nearest_spelling(name, pattern_names());
  throw Error(ExitCode::usage, "--pattern", "", "unknown pattern \"" + printable(name) + "\"",
              near ? "did you mean " + *near + "?"
                   : "choose one of " + join(pattern_names(), ", "));
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

} // namespace shmemctl::sim
