// `optimal` against brute force and against random mappings.
#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "src/model/topo/mapping/mapping.h"
#include "src/model/topo/mapping/ports.h"
#include "tests/support/node_builder.h"

namespace shmemctl {

using shmemctl::testing::NodeBuilder;

namespace {

Node random_node(std::mt19937& random, std::size_t gpus, std::size_t nics) {
  const std::vector<std::string> words = {"PIX", "PXB", "PHB", "NODE", "SYS", "?"};
  auto below = [&random](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
  };
  std::vector<std::vector<std::string>> rows(gpus, std::vector<std::string>(nics));
  for (auto& row : rows)
    for (std::string& word : row)
      word = words[below(words.size())];
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nics; ++i)
    names.push_back("mlx5_" + std::to_string(i));
  Node node = NodeBuilder::from_matrix(names, rows);
  for (Gpu& gpu : node.gpus)
    gpu.numa = below(3) == 0 ? unknown<int>("random") : known(static_cast<int>(below(2)), "random");
  for (Nic& nic : node.nics)
    nic.numa = below(3) == 0 ? unknown<int>("random") : known(static_cast<int>(below(2)), "random");
  return node;
}

Mapping mapping_of(const MappingRequest& request, const std::vector<int>& nics) {
  Mapping mapping;
  mapping.request = request;
  for (std::size_t pe = 0; pe < nics.size(); ++pe)
    mapping.pes.push_back({static_cast<int>(pe), request.gpus[pe], {{nics[pe], 1, {}}}, 1, "", ""});
  return mapping;
}

std::vector<int> first_nics(const Mapping& mapping) {
  std::vector<int> nics;
  for (const PeMapping& pe : mapping.pes)
    nics.push_back(pe.nics.at(0).nic);
  return nics;
}

/// Tries assignments in lexicographic order, cutting branches that cannot win, and keeps the first
/// of the best: the one with the lowest NICs for the lowest PEs.
class BruteForce {
public:
  BruteForce(const Node& node, const MappingRequest& request) : node_(node), request_(request) {
    for (const NicUse& use : fabric_ports(node)) // storage NICs must not be assigned
      nics_.push_back(use.nic);
    loads_.assign(node.nics.size(), 0);
    chosen_.assign(request.gpus.size(), 0);
    visit(0, {0, 0, 0});
  }
  const std::vector<int>& best() const { return best_; }

private:
  using Cost = std::array<int, 3>; // worst load, distance, crossings: none ever decreases

  void visit(std::size_t pe, const Cost& cost) {
    if (!best_.empty() && cost >= best_cost_)
      return;
    if (pe == chosen_.size()) {
      best_ = chosen_;
      best_cost_ = cost;
      return;
    }
    for (const int nic : nics_) {
      int& load = loads_[static_cast<std::size_t>(nic)];
      ++load;
      chosen_[pe] = nic;
      const int gpu = request_.gpus[pe];
      visit(pe + 1,
            {std::max(cost[0], load), cost[1] + distance_rank(gpu_nic_distance(node_, gpu, nic)),
             cost[2] + (crosses_numa(node_, gpu, nic) ? 1 : 0)});
      --load;
    }
  }

  const Node& node_;
  const MappingRequest& request_;
  std::vector<int> nics_;
  std::vector<int> loads_, chosen_, best_;
  Cost best_cost_{};
};

} // namespace

TEST(OptimalProperty, EqualsBruteForceUpToEightByEight) {
  std::mt19937 random(20261121);
  for (int round = 0; round < 150; ++round) {
    const std::size_t pes = 1 + random() % 8;
    const std::size_t nics = 1 + random() % 8;
    const Node node = random_node(random, pes, nics);
    MappingRequest request;
    request.gpus = assign_gpus(node, -1, {});
    EXPECT_EQ(first_nics(map_optimal(node, request)), BruteForce(node, request).best())
        << "round " << round << ", " << pes << " PEs, " << nics << " NICs";
  }
}

TEST(OptimalProperty, NeverWorseThanAnyAnswerAndStable) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    const std::size_t pes = 1 + random() % 24;
    const std::size_t nics = 1 + random() % 24;
    const Node node = random_node(random, pes, nics);
    MappingRequest request;
    request.gpus = assign_gpus(node, -1, {});
    const Mapping optimal = map_optimal(node, request);
    EXPECT_EQ(first_nics(optimal), first_nics(map_optimal(node, request)));
    std::vector<int> other(pes);
    std::vector<int> even(pes);
    for (std::size_t pe = 0; pe < pes; ++pe)
      even[pe] = static_cast<int>(pe % nics);
    for (int attempt = 0; attempt < 50; ++attempt) {
      for (int& nic : other)
        nic = static_cast<int>(random() % nics);
      std::shuffle(even.begin(), even.end(), random);
      EXPECT_TRUE(at_least_as_good(score(node, optimal), score(node, mapping_of(request, other))));
      EXPECT_TRUE(at_least_as_good(score(node, optimal), score(node, mapping_of(request, even))));
    }
  }
}

TEST(OptimalProperty, SeveralNicsPerPeAreDistinctAndEven) {
  std::mt19937 random(99);
  for (int round = 0; round < 60; ++round) {
    const std::size_t pes = 1 + random() % 8;
    const std::size_t nics = pes + random() % 16;
    const Node node = random_node(random, pes, nics);
    MappingRequest request;
    request.policy = Policy::optimal;
    request.gpus = assign_gpus(node, -1, {});
    request.nvshmem.transport = NvshmemTransport::ibgda;
    request.nvshmem.ibgda_multi_port = true;
    Mapping mapping = map_optimal(node, request);
    fill_loads(node, mapping);
    const std::size_t ports = fabric_ports(node).size();
    const std::size_t per_pe = std::max<std::size_t>(1, ports / pes);
    const std::size_t share = (pes * per_pe + ports - 1) / ports;
    double total = 0;
    for (const NicLoad& load : mapping.nics) {
      total += load.load;
      EXPECT_LE(load.pes.size(), share);
    }
    EXPECT_NEAR(total, static_cast<double>(pes), 1e-9);
    for (const PeMapping& pe : mapping.pes) {
      ASSERT_EQ(pe.nics.size(), per_pe);
      for (std::size_t i = 0; i < per_pe; ++i)
        for (std::size_t j = 0; j < i; ++j)
          EXPECT_FALSE(pe.nics[i] == pe.nics[j]);
    }
  }
}

} // namespace shmemctl
