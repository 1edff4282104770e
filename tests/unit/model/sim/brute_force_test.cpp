// The model against a naive count: every row by itself, from the description in
// docs/explanation/moe.md.
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "tests/unit/model/sim/sim_world.h"

namespace shmemctl::test {
namespace {

/// What is counted, by names: "nic 3/2 out", "leaf 5 up", "gpu 7 in".
using Counted = std::map<std::string, double>;

struct Naive {
  int nodes, pes;
  sim::Fabric fabric;
  std::vector<std::vector<std::vector<int>>> nics; ///< [node][local rank]: its NICs
  int nics_per_node = 0;
  Counted counted;

  std::string leaf(int node, int nic) const {
    const int block = node / fabric.leaf_nodes;
    return "leaf " + std::to_string(fabric.kind == sim::FabricKind::fat_tree
                                        ? block
                                        : block * nics_per_node + nic);
  }
  void move(int from, int to, double bytes) {
    if (from == to)
      return;
    const int a = from / pes, b = to / pes;
    if (a == b) {
      counted["gpu " + std::to_string(from) + " out"] += bytes;
      counted["gpu " + std::to_string(to) + " in"] += bytes;
      return;
    }
    const int nic_a = nics[a][from % pes].at(0), nic_b = nics[b][to % pes].at(0);
    counted["nic " + std::to_string(a) + "/" + std::to_string(nic_a) + " out"] += bytes;
    counted["nic " + std::to_string(b) + "/" + std::to_string(nic_b) + " in"] += bytes;
    if (leaf(a, nic_a) != leaf(b, nic_b)) {
      counted[leaf(a, nic_a) + " up"] += bytes;
      counted[leaf(b, nic_b) + " down"] += bytes;
    }
  }
};

enum class Way { hybrid, flat, ll_weighted, ll_partial, ll_per_choice };

/// Dispatch into `there`, combine into `back`.
void count_naively(const moe::Shape& shape, const moe::Routing& routing, int pes, Way way,
                   moe::Format format, Naive& there, Naive& back) {
  const double row = shape.row_bytes(format), row_back = shape.hidden * 2;
  for (int source = 0; source < shape.n_ranks; ++source)
    for (int token = 0; token < routing[source].tokens(); ++token) {
      std::set<int> ranks, nodes;
      std::vector<int> choices;
      for (int k = 0; k < shape.top_k; ++k)
        if (const int expert = routing[source].choices(token)[k]; expert >= 0) {
          const int rank = expert / (shape.n_experts / shape.n_ranks);
          choices.push_back(rank);
          ranks.insert(rank);
          nodes.insert(rank / pes);
        }
      if (way == Way::hybrid) {
        const auto rail = [&](int node) { return node * pes + source % pes; };
        for (const int node : nodes)
          if (node != source / pes) {
            there.move(source, rail(node), row);
            back.move(rail(node), source, row_back);
          }
        for (const int rank : ranks) {
          there.move(rail(rank / pes), rank, row);
          back.move(rank, rail(rank / pes), row_back);
        }
        continue;
      }
      for (const int rank : ranks)
        if (way != Way::ll_per_choice)
          there.move(source, rank, row);
      for (const int rank : ranks)
        if (way == Way::flat || way == Way::ll_partial)
          back.move(rank, source, row_back);
      for (const int rank : choices) {
        if (way == Way::ll_per_choice)
          there.move(source, rank, row);
        if (way == Way::ll_weighted || way == Way::ll_per_choice)
          back.move(rank, source, row_back);
      }
    }
}

Counted counted_of(const sim::Loads& loads) {
  Counted counted;
  const auto put = [&counted](const std::string& name, double bytes) {
    if (bytes != 0)
      counted[name] = bytes;
  };
  const std::size_t ports = loads.group().cluster->ports.size();
  for (std::size_t i = 0; i < loads.out.size(); ++i) {
    const std::string nic = "nic " + std::to_string(i / ports) + "/" + std::to_string(i % ports);
    put(nic + " out", loads.out[i]);
    put(nic + " in", loads.in[i]);
  }
  for (std::size_t i = 0; i < loads.up.size(); ++i) {
    put("leaf " + std::to_string(loads.leaf_number(i)) + " up", loads.up[i]);
    put("leaf " + std::to_string(loads.leaf_number(i)) + " down", loads.down[i]);
  }
  for (std::size_t i = 0; i < loads.link_out.size(); ++i) {
    put("gpu " + std::to_string(i) + " out", loads.link_out[i]);
    put("gpu " + std::to_string(i) + " in", loads.link_in[i]);
  }
  return counted;
}

Naive naive_of(const sim::Cluster& cluster) {
  Naive naive{cluster.nodes, cluster.node_pes, cluster.fabric, {}, 0, {}};
  naive.nics_per_node = static_cast<int>(cluster.ports.size());
  for (int node = 0; node < cluster.nodes; ++node)
    naive.nics.push_back(cluster.kind(node).ports_of_pe);
  return naive;
}

TEST(SimBruteForce, every_mode_routing_and_fabric) {
  int checked = 0;
  for (const sim::Fabric& fabric :
       {sim::Fabric{sim::FabricKind::rail, 2, 1}, sim::Fabric{sim::FabricKind::fat_tree, 2, 2},
        sim::Fabric{sim::FabricKind::rail, 32, 1}})
    for (const Way way :
         {Way::hybrid, Way::flat, Way::ll_weighted, Way::ll_partial, Way::ll_per_choice})
      for (const char* routing :
           {"uniform", "zipf", "one-rank", "hot-expert", "empty-ranks", "grouped"}) {
        const sim::Cluster cluster = small_cluster(4, 3, fabric);
        sim::Request request = small_request(4, 48, 5, 17);
        request.routing = routing;
        request.masked_percent = 20;
        request.uneven = true;
        request.steps = 1;
        request.sample = "tokens";
        request.seed = 9;
        request.dtype = way == Way::flat ? "fp8" : "bf16";
        const bool low = way != Way::hybrid && way != Way::flat;
        request.mode = low ? "ll" : "ht";
        request.flat = way == Way::flat;
        request.combine = way == Way::ll_partial ? "partial" : "weighted";
        request.copies = way == Way::ll_per_choice ? "choice" : "rank";
        const sim::Traffic traffic = traffic_of(request, cluster, std::nullopt);
        const moe::Routing real = moe::make_routing(traffic.moe->shape, traffic.moe->routing);
        Naive there = naive_of(cluster), back = naive_of(cluster);
        count_naively(traffic.moe->shape, real, 3, way, traffic.moe->format, there, back);

        sim::MoeLoads loads(sim::Group{&cluster, 0, 4});
        sim::SourceCounts counts(*traffic.moe);
        for (int source = 0; source < cluster.ranks(); ++source) {
          counts.clear();
          count(*traffic.moe, traffic.moe->choices_of(source, 0), counts);
          add_rows(*traffic.moe, source, counts, loads);
        }
        EXPECT_EQ(counted_of(loads.dispatch), there.counted) << routing;
        EXPECT_EQ(counted_of(loads.combine), back.counted) << routing;
        ++checked;
      }
  EXPECT_EQ(checked, 90);
}

TEST(SimBruteForce, a_replayed_routing_is_what_simulate_says) {
  const sim::Cluster cluster = small_cluster(2, 2);
  sim::Request request = small_request(2, 8, 3, 11);
  const sim::Traffic drawn = traffic_of(request, cluster, std::nullopt);
  moe::RecordedRouting recorded;
  recorded.shape = drawn.moe->shape;
  recorded.routing = moe::make_routing(recorded.shape, drawn.moe->routing);
  request.routing = "./recorded";
  request.tokens = request.top_k = request.experts = std::nullopt;
  const sim::Traffic traffic = traffic_of(request, cluster, recorded);
  const sim::Result result = simulate({&cluster}, traffic, effort_of(request, traffic)).front();
  EXPECT_TRUE(result.exact_bytes && result.exact_times);
  Naive there = naive_of(cluster), back = naive_of(cluster);
  count_naively(recorded.shape, recorded.routing, 2, Way::hybrid, moe::Format::bf16, there, back);
  EXPECT_EQ(counted_of(result.classes.at(0).bytes.dispatch), there.counted);
  EXPECT_EQ(counted_of(result.classes.at(0).bytes.combine), back.counted);
}

TEST(SimBruteForce, patterns) {
  for (const sim::Pattern pattern : {sim::Pattern::all_to_all, sim::Pattern::put_ring,
                                     sim::Pattern::put_pairs, sim::Pattern::put_incast})
    for (const sim::FabricKind kind : {sim::FabricKind::rail, sim::FabricKind::fat_tree}) {
      // One NIC is dead on one node: its GPU shares another's, so pairs of nodes differ.
      const sim::Cluster cluster = small_cluster(6, 3, {kind, 4, 1}, {{2, "mlx5_1", {}, 0}});
      ASSERT_EQ(cluster.kinds.size(), 2U);
      Naive naive = naive_of(cluster);
      const int ranks = cluster.ranks();
      for (int from = 0; from < ranks; ++from)
        for (int to = 0; to < ranks; ++to) {
          const bool sends = pattern == sim::Pattern::all_to_all   ? true
                             : pattern == sim::Pattern::put_ring   ? to == (from + 3) % ranks
                             : pattern == sim::Pattern::put_incast ? to == 0
                                                                   : to == (from + 9) % ranks;
          if (sends)
            naive.move(from, to, 1000);
        }
      sim::Loads loads(sim::Group{&cluster, 0, 6});
      add_pattern(pattern, 1000, loads);
      EXPECT_EQ(counted_of(loads), naive.counted) << to_string(pattern);
    }
}

} // namespace
} // namespace shmemctl::test
