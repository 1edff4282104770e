// The mapping that minimises the load of the busiest NIC and then the distance: a minimum-cost
// flow.
#include "src/model/topo/mapping/optimal.h"

#include <algorithm>
#include <limits>

#include "src/model/topo/mapping/ports.h"

namespace shmemctl {

namespace {
constexpr std::int64_t unreachable = std::numeric_limits<std::int64_t>::max();
std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}
} // namespace

MinCostFlow::MinCostFlow(int nodes) : leaving_(at(nodes)), potential_(at(nodes), 0) {}

int MinCostFlow::add_edge(int from, int to, std::int64_t capacity, std::int64_t cost) {
  const int number = static_cast<int>(edges_.size());
  edges_.push_back(Edge{from, to, capacity, cost});
  edges_.push_back(Edge{to, from, 0, -cost});
  leaving_[at(from)].push_back(number);
  leaving_[at(to)].push_back(number + 1);
  return number;
}

std::int64_t MinCostFlow::reduced_cost(const Edge& edge) const {
  return edge.cost + potential_[at(edge.from)] - potential_[at(edge.to)];
}

/// Dijkstra over the dense graph; raises the potentials by the distances and returns the edge by
/// which each node is reached (-1: not reached).
std::vector<int> MinCostFlow::shortest_path_edges(int source) {
  const std::size_t count = leaving_.size();
  std::vector<std::int64_t> distance(count, unreachable);
  std::vector<int> reached_by(count, -1);
  std::vector<bool> settled(count, false);
  distance[at(source)] = 0;
  std::int64_t farthest = 0;
  for (;;) {
    std::size_t nearest = count;
    for (std::size_t i = 0; i < count; ++i)
      if (!settled[i] && distance[i] != unreachable &&
          (nearest == count || distance[i] < distance[nearest]))
        nearest = i;
    if (nearest == count)
      break;
    settled[nearest] = true;
    farthest = distance[nearest];
    for (int number : leaving_[nearest]) {
      const Edge& edge = edges_[at(number)];
      if (edge.residual <= 0)
        continue;
      const std::int64_t candidate = distance[nearest] + reduced_cost(edge);
      if (candidate < distance[at(edge.to)]) {
        distance[at(edge.to)] = candidate;
        reached_by[at(edge.to)] = number;
      }
    }
  }
  // Unreachable nodes keep non-negative reduced costs if they move by the largest distance.
  for (std::size_t i = 0; i < count; ++i)
    potential_[i] += distance[i] == unreachable ? farthest : distance[i];
  return reached_by;
}

std::int64_t MinCostFlow::send(int source, int sink, std::int64_t amount) {
  std::int64_t sent = 0;
  while (sent < amount) {
    const std::vector<int> reached_by = shortest_path_edges(source);
    if (reached_by[at(sink)] < 0)
      break;
    std::int64_t room = amount - sent;
    for (int node = sink; node != source; node = edges_[at(reached_by[at(node)])].from)
      room = std::min(room, edges_[at(reached_by[at(node)])].residual);
    for (int node = sink; node != source; node = edges_[at(reached_by[at(node)])].from) {
      const int number = reached_by[at(node)];
      edges_[at(number)].residual -= room;
      edges_[at(number ^ 1)].residual += room;
    }
    sent += room;
  }
  return sent;
}

std::int64_t MinCostFlow::flow_on(int edge) const {
  return edges_[at(edge ^ 1)].residual;
}

bool MinCostFlow::is_free(int edge) const {
  const Edge& candidate = edges_[at(edge)];
  return candidate.residual > 0 && !candidate.frozen && reduced_cost(candidate) == 0;
}

std::vector<int> MinCostFlow::equal_cost_paths_to(int target) const {
  std::vector<int> paths(leaving_.size(), -1);
  std::vector<int> queue = {target};
  for (std::size_t next = 0; next < queue.size(); ++next)
    for (int leaving : leaving_[at(queue[next])]) {
      const int entering = leaving ^ 1;
      const int from = edges_[at(entering)].from;
      if (from == target || paths[at(from)] >= 0 || !is_free(entering))
        continue;
      paths[at(from)] = entering;
      queue.push_back(from);
    }
  return paths;
}

void MinCostFlow::push_along(const std::vector<int>& paths, int start, int target) {
  for (int node = start; node != target; node = edges_[at(paths[at(node)])].to)
    push(paths[at(node)]);
}

void MinCostFlow::push(int edge) {
  edges_[at(edge)].residual -= 1;
  edges_[at(edge ^ 1)].residual += 1;
}

void MinCostFlow::freeze(int edge) {
  edges_[at(edge)].frozen = true;
  edges_[at(edge ^ 1)].frozen = true;
}

namespace {

/// PEs on the left, ports on the right, and an edge from every PE to every port.
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
  // Ports can be assigned round-robin, so that no port exceeds the even share, rounded up: this is
  // the minimum of the worst load, and it needs no search.
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

/// Gives a PE the lowest ports that it can have in an optimal mapping, given the ports of the PEs
/// before it.
void Assignment::settle(std::size_t pe) {
  const auto vertex = static_cast<int>(pe);
  std::vector<bool> settled(port_count_, false);
  for (int slot = 0; slot < per_pe_; ++slot) {
    const std::vector<int> paths = flow_.equal_cost_paths_to(vertex);
    for (std::size_t port = 0; port < port_count_; ++port) {
      const int candidate = edge(pe, port);
      const auto port_vertex = static_cast<int>(pe_count_ + port);
      if (settled[port])
        continue;
      if (flow_.flow_on(candidate) == 0) {
        if (!flow_.is_free(candidate) || paths[static_cast<std::size_t>(port_vertex)] < 0)
          continue;
        flow_.push(candidate);
        flow_.push_along(paths, port_vertex, vertex);
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
  std::vector<std::vector<std::size_t>> result(pe_count_);
  for (std::size_t pe = 0; pe < pe_count_; ++pe) {
    settle(pe);
    for (std::size_t port = 0; port < port_count_; ++port)
      if (flow_.flow_on(edge(pe, port)) > 0)
        result[pe].push_back(port);
  }
  return result;
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
      pe.reason = "no RDMA device has a usable port";
    mapping.pes.push_back(std::move(pe));
  }
  return mapping;
}

} // namespace shmemctl
