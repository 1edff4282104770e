#include "src/topo/mapping/min_cost_flow.h"

#include <algorithm>
#include <limits>

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
  // What is out of reach keeps reduced costs that are not negative if it moves by the farthest.
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

std::vector<int> MinCostFlow::equal_cost_ways_to(int target) const {
  std::vector<int> ways(leaving_.size(), -1);
  std::vector<int> queue = {target};
  for (std::size_t next = 0; next < queue.size(); ++next)
    for (int leaving : leaving_[at(queue[next])]) {
      const int entering = leaving ^ 1;
      const int from = edges_[at(entering)].from;
      if (from == target || ways[at(from)] >= 0 || !is_free(entering))
        continue;
      ways[at(from)] = entering;
      queue.push_back(from);
    }
  return ways;
}

void MinCostFlow::push_along(const std::vector<int>& ways, int start, int target) {
  for (int node = start; node != target; node = edges_[at(ways[at(node)])].to)
    push(ways[at(node)]);
}

void MinCostFlow::push(int edge) {
  edges_[at(edge)].residual -= 1;
  edges_[at(edge ^ 1)].residual += 1;
}

void MinCostFlow::freeze(int edge) {
  edges_[at(edge)].frozen = true;
  edges_[at(edge ^ 1)].frozen = true;
}

} // namespace shmemctl
