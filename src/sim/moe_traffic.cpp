#include "src/sim/moe_traffic.h"

#include <algorithm>

namespace shmemctl::sim {

namespace {

std::size_t as_size(std::int32_t value) {
  return static_cast<std::size_t>(value);
}

} // namespace

const char* to_string(MoeMode mode) {
  switch (mode) {
  case MoeMode::hybrid:
    return "hybrid";
  case MoeMode::high_throughput:
    return "ht";
  case MoeMode::low_latency:
    return "ll";
  }
  return "";
}

moe::RankRouting MoeTraffic::choices_of(int rank, std::uint64_t step) const {
  if (replay)
    return (*replay)[as_size(rank)];
  moe::RoutingRequest request = routing;
  request.step = step;
  return moe::make_rank_routing(shape, request, rank);
}

int MoeTraffic::tokens_of(int rank) const {
  return replay ? (*replay)[as_size(rank)].tokens() : moe::tokens_of_rank(shape, routing, rank);
}

SourceCounts::SourceCounts(const MoeTraffic& traffic)
    : to_node(as_size(traffic.nodes())), to_rank(as_size(traffic.shape.n_ranks)),
      choices(to_rank.size()) {}

void SourceCounts::clear() {
  for (std::vector<double>* all : {&to_node, &to_rank, &choices})
    std::fill(all->begin(), all->end(), 0);
}

void MoeLoads::clear() {
  dispatch.clear();
  combine.clear();
}

void MoeLoads::add(const MoeLoads& other, double times) {
  dispatch.add(other.dispatch, times);
  combine.add(other.combine, times);
}

void count(const MoeTraffic& traffic, const moe::RankRouting& routing, SourceCounts& counts) {
  // The last token that was counted for a rank or node, so that each is counted once.
  std::vector<std::int32_t> last_of_rank(counts.to_rank.size(), -1);
  std::vector<std::int32_t> last_of_node(counts.to_node.size(), -1);
  for (std::int32_t token = 0; token < routing.tokens(); ++token) {
    const std::int32_t* const chosen = routing.choices(token);
    for (std::int32_t k = 0; k < routing.top_k; ++k) {
      if (chosen[k] < 0)
        continue;
      const std::size_t rank = as_size(traffic.rank_of_expert[as_size(chosen[k])]);
      const std::size_t node = rank / as_size(traffic.node_ranks);
      ++counts.choices[rank];
      counts.to_rank[rank] += last_of_rank[rank] != token ? 1 : 0;
      counts.to_node[node] += last_of_node[node] != token ? 1 : 0;
      last_of_rank[rank] = last_of_node[node] = token;
    }
  }
}

void add_crossing_rows(const MoeTraffic& traffic, int source, const std::vector<double>& to_node,
                       MoeLoads& loads) {
  const double there = traffic.shape.row_bytes(traffic.format);
  const double back = traffic.shape.row_bytes(moe::Format::bf16);
  const int own = source / traffic.node_ranks;
  for (int node = 0; node < traffic.nodes(); ++node) {
    const double rows = to_node[as_size(node)];
    if (node == own || rows == 0)
      continue;
    const int rail = node * traffic.node_ranks + source % traffic.node_ranks;
    loads.dispatch.add(source, rail, rows * there);
    loads.combine.add(rail, source, rows * back);
  }
}

void add_rows(const MoeTraffic& traffic, int source, const SourceCounts& counts, MoeLoads& loads) {
  const double there = traffic.shape.row_bytes(traffic.format);
  const double back = traffic.shape.row_bytes(moe::Format::bf16);
  const bool hybrid = traffic.mode == MoeMode::hybrid;
  const bool low = traffic.mode == MoeMode::low_latency;
  if (hybrid)
    add_crossing_rows(traffic, source, counts.to_node, loads);
  for (int rank = 0; rank < traffic.shape.n_ranks; ++rank) {
    const double rows = counts.to_rank[as_size(rank)];
    if (rows == 0)
      continue;
    const double choices = counts.choices[as_size(rank)];
    const int by =
        hybrid ? rank / traffic.node_ranks * traffic.node_ranks + source % traffic.node_ranks
               : source;
    loads.dispatch.add(by, rank, (low && traffic.per_choice ? choices : rows) * there);
    loads.combine.add(rank, by, (low && !traffic.partial ? choices : rows) * back);
  }
}

} // namespace shmemctl::sim
