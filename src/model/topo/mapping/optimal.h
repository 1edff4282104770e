// The minimum-cost flow that finds the best mapping.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace shmemctl {

/// Successive shortest paths with node potentials, so that Dijkstra's algorithm finds each path
/// although residual edges have negative costs (Edmonds and Karp, J. ACM 19 (1972) 248-264; Ahuja,
/// Magnanti, Orlin: Network Flows, 1993, section 9.7). Costs given must not be negative.
/// O(flow x (nodes^2 + edges)) time.
class MinCostFlow {
public:
  explicit MinCostFlow(int nodes);

  /// @return the edge's number, for flow_on() and force()
  int add_edge(int from, int to, std::int64_t capacity, std::int64_t cost);

  /// Sends as much as fits, at most `amount`, at the least cost; returns the amount sent.
  std::int64_t send(int source, int sink, std::int64_t amount);

  std::int64_t flow_on(int edge) const;

  /// Nodes from which `target` can be reached in the residual network over edges of zero reduced
  /// cost: rerouting along such a path does not change the flow's value and cost.
  /// @return per node the edge to take towards `target`, -1 if there is no such path
  std::vector<int> equal_cost_paths_to(int target) const;
  /// Pushes one unit from `start` along the paths that equal_cost_paths_to(target) returned.
  void push_along(const std::vector<int>& paths, int start, int target);
  /// True if one more unit can go over `edge` at no reduced cost.
  bool is_free(int edge) const;
  /// Pushes one unit over this edge alone; the caller closes the cycle with push_along().
  void push(int edge);
  /// Takes an edge, in both directions, out of later rerouting.
  void freeze(int edge);

private:
  struct Edge {
    int from, to;
    std::int64_t residual, cost;
    bool frozen = false;
  };
  std::int64_t reduced_cost(const Edge& edge) const;
  std::vector<int> shortest_path_edges(int source);

  std::vector<Edge> edges_; ///< edge 2i and its reverse 2i + 1
  std::vector<std::vector<int>> leaving_;
  std::vector<std::int64_t> potential_;
};

} // namespace shmemctl
