// The experts' part, and the way back.
#include "src/bench/moe/host_high_throughput.h"

#include <algorithm>

namespace shmemctl::moe {

void HighThroughput::run_experts() {
  std::size_t index = 0;
  for (const std::byte* row : received_rows()) {
    const std::vector<std::uint16_t> read = read_row(setup_, row);
    const float factor = rank_factor(setup_.shape, layout_.experts(row), me_);
    auto* const out = reinterpret_cast<std::uint16_t*>(value_row(lies_.results, index++));
    std::transform(read.begin(), read.end(), out,
                   [factor](std::uint16_t x) { return transformed(x, factor); });
    if (setup_.weights_home)
      weigh(row, weights_of(value_row(lies_.results, index - 1)));
  }
}

/// What this rank gives back of a row's weights.
void HighThroughput::weigh(const std::byte* row, float* out) const {
  const std::int32_t* const experts = layout_.experts(row);
  for (std::int32_t k = 0; k < setup_.shape.top_k; ++k)
    out[k] = setup_.shape.local_expert(experts[k], me_) == no_expert
                 ? 0
                 : weight_back(layout_.weights(row)[k], experts[k]);
}

Times HighThroughput::combine() {
  Times times = no_times();
  const Clock::time_point begin = Clock::now();
  go(Direction::combine);
  ++back_epoch_;
  meet(lies_.signals.ready_back, back_epoch_, "combine: readiness", times);
  times.counts_us = us_since(begin);
  times.begin_wait_us = times.wait_us;
  times.arrival_us = *std::max_element(times.wait_us.begin(), times.wait_us.end());
  give_back();
  std::vector<Awaited> all;
  for (const std::int32_t rank : mates_)
    all.push_back({rank, rank});
  wait_for_all(
      all,
      [&](std::int32_t rank) { return load(words(lies_.signals.rows_back) + rank) >= back_epoch_; },
      "combine: rows", times);
  add_up_for_rails();
  add_up_own(times);
  rma_.quiet();
  times.total_us = us_since(begin);
  times.transfer_us = times.total_us - times.counts_us;
  return times;
}

/// Each row goes to the rank of this node that adds up for the row's home.
void HighThroughput::give_back() {
  const std::int32_t local = me_ % setup_.node_ranks;
  std::size_t index = 0;
  for (const std::byte* row : received_rows()) {
    const RowSource source = layout_.source(row);
    const std::byte* const result = value_row(lies_.results, index++);
    if (is_token(source))
      put(back_row(local, node_of(source.rank, setup_.node_ranks), source.token), result,
          back_row_bytes(), rail_of(source.rank, node_, setup_.node_ranks));
  }
  order();
  for (const std::int32_t rank : mates_)
    signal(words(lies_.signals.rows_back) + me_, back_epoch_, rank);
}

/// What this node's ranks have given back of tokens of other nodes crosses as one row.
void HighThroughput::add_up_for_rails() {
  const auto channels = as_size(setup_.shape.hidden);
  for (const std::int32_t home : rails_) {
    const std::int32_t node = node_of(home, setup_.node_ranks);
    for (const Relayed& relayed : relayed_[as_size(node)]) {
      std::vector<const std::uint16_t*> rows;
      for (std::int32_t local = 0; local < setup_.node_ranks; ++local)
        if (goes_to(relayed.local, local))
          rows.push_back(values(back_row(local, node, relayed.token)));
      std::byte* const sum = value_row(lies_.sums, token_of_node(node, relayed.token));
      add_up(rows, nullptr, channels, reinterpret_cast<std::uint16_t*>(sum));
      add_up_weights(rows, weights_of(sum));
      put(value_row(lies_.sums_in, token_of_node(node_, relayed.token)), sum, back_row_bytes(),
          home);
    }
  }
  order();
  for (const std::int32_t home : rails_)
    signal(words(lies_.signals.nodes_back) + node_, back_epoch_, home);
}

void HighThroughput::add_up_own(Times& times) {
  wait_for_rails(
      [&](std::int32_t node) {
        return load(words(lies_.signals.nodes_back) + node) >= back_epoch_;
      },
      "combine: sums of other nodes", times);
  const auto channels = as_size(setup_.shape.hidden);
  std::vector<std::byte> own(back_row_bytes());
  for (std::int32_t token = 0; token < tokens(); ++token) {
    std::vector<const std::uint16_t*> rows, totals;
    const RankMask mask = masks_[as_size(token)];
    for (std::int32_t local = 0; local < setup_.node_ranks; ++local)
      if (goes_to(mask, node_ * setup_.node_ranks + local))
        rows.push_back(values(back_row(local, node_, token)));
    if (!rails_.empty()) { // this node's sum is rounded like those of the others
      add_up(rows, nullptr, channels, reinterpret_cast<std::uint16_t*>(own.data()));
      add_up_weights(rows, weights_of(own.data()));
      for (std::int32_t node = 0; node < setup_.n_nodes(); ++node)
        if (ranks_on_node(mask, node, setup_.node_ranks) != 0)
          totals.push_back(node == node_
                               ? values(own.data())
                               : values(value_row(lies_.sums_in, token_of_node(node, token))));
      rows = totals;
    }
    add_up_weights(rows, home_weights(token));
    add_up(rows, setup_.bias ? biases_[as_size(token)].data() : nullptr, channels,
           combined_row(token));
  }
}

} // namespace shmemctl::moe
