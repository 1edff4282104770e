// Random machines with random settings, for property tests of what is printed about them.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "src/base/text.h"
#include "src/model/topo/mapping/mapping.h"
#include "tests/support/node_builder.h"
#include "tests/support/random_node.h"

namespace shmemctl::test {

class RandomCase {
public:
  explicit RandomCase(std::mt19937_64& random) : random_(random) {}

  Node node() {
    switch (below(4)) {
    case 0:
      return random_node(random_);
    case 1:
      return tree();
    default:
      return matrix();
    }
  }

  MappingRequest request(const Node& node) {
    MappingRequest request;
    request.world = pick<World>({World::node, World::node, World::deepep_ht, World::deepep_ll});
    if (one_in(8))
      request.policy = pick<Policy>({Policy::nccl, Policy::optimal});
    const int pes = one_in(3) ? 1 + below(9) : -1;
    request.gpus = assign_gpus(node, pes, {});
    NvshmemSettings& settings = request.nvshmem;
    settings.version = pick<NvshmemVersion>({{1, 1, 3},
                                             {2, 2, 1},
                                             {2, 4, 1},
                                             {2, 10, 1},
                                             {3, 3, 20},
                                             {3, 4, 5},
                                             {3, 5, 1},
                                             {3, 6, 5},
                                             {3, 7, 0},
                                             {9, 9, 9}});
    if (one_in(3))
      settings.transport = NvshmemTransport::ibgda;
    if (one_in(6)) {
      settings.unknown_transport = pick<std::string>({"ibgda", "IBGDA", "ibrcc", "x"});
      settings.proxy_transport = NvshmemTransport::none;
      if (settings.transport != NvshmemTransport::ibgda)
        settings.transport = NvshmemTransport::none;
    } else if (one_in(6)) {
      settings.proxy_transport =
          pick<NvshmemTransport>({NvshmemTransport::none, NvshmemTransport::ibdevx,
                                  NvshmemTransport::ucx, NvshmemTransport::libfabric});
      if (settings.transport != NvshmemTransport::ibgda)
        settings.transport = settings.proxy_transport;
    }
    settings.ibgda_multi_port = one_in(4);
    settings.enable_nic_pe_mapping = one_in(2);
    if (one_in(3))
      settings.hca_list = (one_in(3) ? "^" : "") + list(node, false);
    if (one_in(3))
      settings.hca_pe_mapping = list(node, true);
    if (one_in(4))
      settings.hca_prefix = pick<std::string>({"mlx5", "ibp", "^smi", "x", "roce", "^mlx5"});
    return request;
  }

private:
  int below(int limit) {
    return static_cast<int>(random_() % static_cast<std::uint64_t>(limit < 1 ? 1 : limit));
  }
  bool one_in(int n) { return below(n) == 0; }
  template <class T>
  T pick(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(below(static_cast<int>(items.size())))];
  }

  std::string nic_name(int number) {
    return pick<std::string>({"mlx5_", "mlx5_", "ibp", "rocep", "rdmap"}) + std::to_string(number);
  }

  Node tree() {
    testing::NodeBuilder builder =
        testing::NodeBuilder::hgx(1 + below(4), 1 + below(2), 1 + below(2));
    for (int extra = below(3); extra > 0; --extra)
      builder.nic_at_root(
          builder.host_bridge(below(2)), "mlx5_9" + std::to_string(extra),
          {{1, PortState::active, one_in(2) ? LinkLayer::ethernet : LinkLayer::infiniband,
            one_in(2) ? 25.0 : 400.0}});
    if (one_in(3))
      for (Nic& nic : builder.node.nics)
        nic.name = "ibp" + nic.name.substr(5) + "s0";
    if (one_in(3))
      builder.node.nics[0].ports[0].state = known(PortState::down, "random");
    for (std::size_t i = 0; i < builder.node.nics.size(); ++i) {
      NicPort& port = builder.node.nics[i].ports[0];
      if (one_in(2))
        port.netdev = known("net" + std::to_string(i), "random");
      if (one_in(6))
        port.state = known(one_in(3) ? PortState::init : PortState::down, "random");
    }
    return builder.node;
  }

  Node matrix() {
    const int gpus = 1 + below(6);
    const int nics = 1 + below(6);
    const bool one_kind = !one_in(3);
    const std::string kind = nic_name(0);
    std::vector<std::string> names;
    for (int i = 0; i < nics; ++i)
      names.push_back(one_kind ? kind.substr(0, kind.size() - 1) + std::to_string(i) : nic_name(i));
    std::vector<std::vector<std::string>> rows(static_cast<std::size_t>(gpus));
    for (auto& row : rows)
      for (int i = 0; i < nics; ++i)
        row.push_back(pick<std::string>({"PIX", "PXB", "NODE", "NODE", "SYS", "SYS", "SYS"}));
    return testing::NodeBuilder::from_matrix(names, rows);
  }

  std::string list(const Node& node, bool counts) {
    std::vector<std::string> entries;
    for (int left = 1 + below(6); left > 0; --left) {
      std::string entry = node.nics.empty() ? "mlx5_0" : pick(node.nics).name;
      if (one_in(8))
        entry = pick<std::string>({"mlx5_99", " " + entry, "mlx_0", "", "x;y'z", entry + "9"});
      if (one_in(2))
        entry += pick<std::string>({":1", ":1", ":2", ":0", ":", ":x"});
      if (counts && one_in(2))
        entry += pick<std::string>({":1", ":2", ":0", ":x", "::2"});
      entries.push_back(entry);
    }
    return join(entries, ",");
  }

  std::mt19937_64& random_;
};

} // namespace shmemctl::test
