#include "src/instruments/bench/moe/traffic.h"

namespace shmemctl::moe {

namespace {

std::size_t to_index(std::int32_t value) {
  return static_cast<std::size_t>(value);
}

Traffic nothing(const Setup& setup) {
  const std::vector<std::uint64_t> zeros(to_index(setup.shape.n_ranks));
  return {zeros, zeros, zeros, std::vector<std::uint64_t>(zeros.size() * zeros.size())};
}

/// Size of a dispatch's row as it is sent: values and scales.
std::uint64_t row_bytes(const Setup& setup) {
  const std::int32_t scales =
      setup.format == Format::fp8 ? setup.shape.scales_per_row() * setup.scale_bytes : 0;
  const std::int32_t size_bytes = setup.shape.value_bytes(setup.format) + scales;
  return static_cast<std::uint64_t>(size_bytes);
}

/// Counts a row that moves from one rank to another.
void move(const Setup& setup, std::int32_t from, std::int32_t to, std::uint64_t size_bytes,
          Traffic& traffic) {
  if (from == to)
    return;
  traffic.sent_bytes[to_index(from)] += size_bytes;
  traffic.moved_bytes[to_index(from * setup.shape.n_ranks + to)] += size_bytes;
  if (setup.crosses(from, to))
    traffic.crossing_bytes[to_index(from)] += size_bytes;
}

/// Calls `visit(source, choices, ranks)` for every token of all ranks.
template <class Visit>
void for_each_token(const Setup& setup, Visit&& visit) {
  for (std::int32_t source = 0; source < setup.shape.n_ranks; ++source) {
    const RankRouting& sent = (*setup.routing)[to_index(source)];
    for (std::int32_t token = 0; token < sent.tokens(); ++token)
      visit(source, sent.choices(token), ranks_of_token(setup.shape, sent.choices(token)));
  }
}

/// Visits the ranks that forward a row on other nodes; none if rows go directly.
template <class Visit>
void for_each_relay(const Setup& setup, std::int32_t source, RankMask ranks, Visit&& visit) {
  if (setup.mode != Mode::high_throughput)
    return;
  for (std::int32_t node = 0; node < setup.n_nodes(); ++node)
    if (node != node_of(source, setup.node_ranks) &&
        ranks_on_node(ranks, node, setup.node_ranks) != 0)
      visit(rail_of(source, node, setup.node_ranks));
}

/// The rank that delivers a row of `source` to `rank`.
std::int32_t last_hop(const Setup& setup, std::int32_t source, std::int32_t rank) {
  return setup.mode == Mode::high_throughput
             ? rail_of(source, node_of(rank, setup.node_ranks), setup.node_ranks)
             : source;
}

} // namespace

Traffic dispatch_traffic(const Setup& setup) {
  const std::uint64_t row = row_bytes(setup);
  Traffic traffic = nothing(setup);
  for_each_token(setup, [&](std::int32_t source, const std::int32_t* choices, RankMask ranks) {
    for_each_relay(setup, source, ranks,
                   [&](std::int32_t rail) { move(setup, source, rail, row, traffic); });
    for (std::int32_t rank = 0; rank < setup.shape.n_ranks; ++rank)
      if (goes_to(ranks, rank)) {
        move(setup, last_hop(setup, source, rank), rank, row, traffic);
        if (setup.mode == Mode::high_throughput)
          traffic.logical_bytes[to_index(rank)] += row;
      }
    if (setup.mode == Mode::low_latency)
      for (std::int32_t k = 0; k < setup.shape.top_k; ++k)
        if (choices[k] >= 0)
          traffic.logical_bytes[to_index(setup.shape.rank_of_expert(choices[k]))] += row;
  });
  return traffic;
}

Traffic combine_traffic(const Setup& setup) {
  const auto row = static_cast<std::uint64_t>(setup.shape.row_bytes(Format::bf16));
  Traffic traffic = nothing(setup);
  for_each_token(setup, [&](std::int32_t home, const std::int32_t* choices, RankMask ranks) {
    for_each_relay(setup, home, ranks,
                   [&](std::int32_t rail) { move(setup, rail, home, row, traffic); });
    if (setup.combine == Combine::weighted) {
      for (std::int32_t k = 0; k < setup.shape.top_k; ++k)
        if (choices[k] >= 0) {
          const std::int32_t rank = setup.shape.rank_of_expert(choices[k]);
          move(setup, rank, home, row, traffic);
          traffic.logical_bytes[to_index(rank)] += row;
        }
      return;
    }
    for (std::int32_t rank = 0; rank < setup.shape.n_ranks; ++rank)
      if (goes_to(ranks, rank)) {
        move(setup, rank, last_hop(setup, home, rank), row, traffic);
        traffic.logical_bytes[to_index(rank)] += row;
      }
  });
  return traffic;
}

} // namespace shmemctl::moe
