#include <algorithm>

#include "src/topo/mapping/min_cost_flow.h"
#include "src/topo/mapping/ports.h"

namespace shmemctl {

namespace {

/// PEs on the left, ports on the right, every port open to every PE.
class Assignment {
public:
  Assignment(const Node& node, const std::vector<int>& gpus, const std::vector<NicUse>& ports,
             int per_pe);

  /// Ports of each PE, in ascending order.
  std::vector<std::vector<std::size_t>> solve();

private:
  int edge(std::size_t pe, std::size_t port) const { return edges_[pe * port_count_ + port]; }
  void settle(std::size_t pe);

  std::size_t pe_count_, port_count_;
  int per_pe_;
  int source_, sink_;
  MinCostFlow flow_;
  std::vector<int> edges_; ///< [pe][port]
};

Assignment::Assignment(const Node& node, const std::vector<int>& gpus,
                       const std::vector<NicUse>& ports, int per_pe)
    : pe_count_(gpus.size()), port_count_(ports.size()), per_pe_(per_pe),
      source_(static_cast<int>(pe_count_ + port_count_)), sink_(source_ + 1), flow_(sink_ + 1) {
  const auto demand = static_cast<std::int64_t>(pe_count_) * per_pe_;
  // Any ports can be dealt out in turn, so that no port takes more than the even share, rounded
  // up: this is the least worst load, and no search for it is needed.
  const auto count = static_cast<std::int64_t>(port_count_);
  const std::int64_t share = (demand + count - 1) / count;
  const std::int64_t weight = demand + 1; // one step of distance outweighs every crossing
  for (std::size_t pe = 0; pe < pe_count_; ++pe)
    flow_.add_edge(source_, static_cast<int>(pe), per_pe_, 0);
  for (std::size_t port = 0; port < port_count_; ++port)
    flow_.add_edge(static_cast<int>(pe_count_ + port), sink_, share, 0);
  edges_.reserve(pe_count_ * port_count_);
  for (std::size_t pe = 0; pe < pe_count_; ++pe)
    for (std::size_t port = 0; port < port_count_; ++port) {
      const int rank = distance_rank(gpu_nic_distance(node, gpus[pe], ports[port].nic));
      const int crossing = crosses_numa(node, gpus[pe], ports[port].nic) ? 1 : 0;
      edges_.push_back(flow_.add_edge(static_cast<int>(pe), static_cast<int>(pe_count_ + port), 1,
                                      rank * weight + crossing));
    }
}

/// Gives a PE the lowest ports that any optimal answer gives it, the PEs before it being settled.
void Assignment::settle(std::size_t pe) {
  const auto vertex = static_cast<int>(pe);
  std::vector<bool> settled(port_count_, false);
  for (int slot = 0; slot < per_pe_; ++slot) {
    const std::vector<int> ways = flow_.equal_cost_ways_to(vertex);
    for (std::size_t port = 0; port < port_count_; ++port) {
      const int candidate = edge(pe, port);
      const auto port_vertex = static_cast<int>(pe_count_ + port);
      if (settled[port])
        continue;
      if (flow_.flow_on(candidate) == 0) {
        if (!flow_.is_free(candidate) || ways[static_cast<std::size_t>(port_vertex)] < 0)
          continue;
        flow_.push(candidate);
        flow_.push_along(ways, port_vertex, vertex);
      }
      settled[port] = true;
      flow_.freeze(candidate);
      break;
    }
  }
  for (std::size_t port = 0; port < port_count_; ++port)
    flow_.freeze(edge(pe, port));
}

std::vector<std::vector<std::size_t>> Assignment::solve() {
  flow_.send(source_, sink_, static_cast<std::int64_t>(pe_count_) * per_pe_);
  std::vector<std::vector<std::size_t>> answer(pe_count_);
  for (std::size_t pe = 0; pe < pe_count_; ++pe) {
    settle(pe);
    for (std::size_t port = 0; port < port_count_; ++port)
      if (flow_.flow_on(edge(pe, port)) > 0)
        answer[pe].push_back(port);
  }
  return answer;
}

} // namespace

Mapping map_optimal(const Node& node, const MappingRequest& request) {
  Mapping mapping;
  mapping.request = request;
  const std::vector<NicUse> ports = wanted_ports(node, request);
  const int per_pe =
      nics_per_pe(settings_in(request.world, request.nvshmem), request.gpus.size(), ports.size());
  std::vector<std::vector<std::size_t>> chosen(request.gpus.size());
  if (per_pe > 0)
    chosen = Assignment(node, request.gpus, ports, per_pe).solve();
  for (std::size_t i = 0; i < request.gpus.size(); ++i) {
    PeMapping pe;
    pe.pe = static_cast<int>(i);
    pe.gpu = request.gpus[i];
    pe.chosen_by = "optimal";
    for (std::size_t port : chosen[i]) {
      NicUse use = ports[port];
      use.distance = gpu_nic_distance(node, pe.gpu, use.nic);
      pe.nics.push_back(use);
    }
    std::stable_sort(pe.nics.begin(), pe.nics.end(), [](const NicUse& a, const NicUse& b) {
      return distance_rank(a.distance) < distance_rank(b.distance);
    });
    pe.used = static_cast<int>(pe.nics.size());
    if (pe.nics.empty())
      pe.reason = "no RDMA device has a port that could carry traffic";
    mapping.pes.push_back(std::move(pe));
  }
  return mapping;
}

} // namespace shmemctl
