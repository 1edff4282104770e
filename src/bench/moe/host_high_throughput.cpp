// The way there: counts, rows, rows that are handed on.
#include "src/bench/moe/host_high_throughput.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace shmemctl::moe {

Times HighThroughput::dispatch(bool cached) {
  Times times = no_times();
  const Clock::time_point begin = Clock::now();
  go(Direction::dispatch);
  ++epoch_;
  if (cached) {
    meet(lies_.signals.ready, epoch_, "cached dispatch: readiness", times);
  } else {
    make_plan();
    exchange_counts(times);
  }
  times.counts_us = us_since(begin);
  times.begin_wait_us = times.wait_us;
  times.arrival_us = *std::max_element(times.wait_us.begin(), times.wait_us.end());
  if (mutates(Mutation::Kind::early_signal)) {
    signal_rows();
    rma_.quiet();
    mutation_.gate();
  }
  send_rows();
  if (!mutates(Mutation::Kind::early_signal))
    signal_rows();
  hand_on(times);
  wait_for_rows(times);
  rma_.quiet(); // the rows that were sent may change from now on
  times.total_us = us_since(begin);
  times.transfer_us = times.total_us - times.counts_us;
  return times;
}

void HighThroughput::make_plan() {
  const Shape& shape = setup_.shape;
  masks_.clear();
  relays_.assign(as_size(setup_.n_nodes()), 0);
  std::vector<std::int32_t> mine(as_size(n_));
  std::vector<std::int32_t> chosen(as_size(shape.n_experts));
  for (std::int32_t token = 0; token < tokens(); ++token) {
    masks_.push_back(ranks_of_token(shape, mine_.choices(token)));
    for (std::int32_t rank = 0; rank < n_; ++rank)
      mine[as_size(rank)] += goes_to(masks_.back(), rank) ? 1 : 0;
    for (std::int32_t node = 0; node < setup_.n_nodes(); ++node)
      relays_[as_size(node)] += ranks_on_node(masks_.back(), node, setup_.node_ranks) != 0 ? 1 : 0;
    for (std::int32_t k = 0; k < shape.top_k; ++k)
      if (const std::int32_t expert = mine_.choices(token)[k]; expert >= 0)
        ++chosen[as_size(expert)];
  }
  auto* out = reinterpret_cast<std::int32_t*>(memory_ + lies_.counts_out);
  for (std::int32_t rank = 0; rank < n_; ++rank) {
    out = std::copy(mine.begin(), mine.end(), out);
    const auto first = chosen.begin() + shape.first_expert(rank);
    out = std::copy(first, first + shape.local_experts(), out);
  }
}

void HighThroughput::exchange_counts(Times& times) {
  ++counts_epoch_;
  // Whoever writes the other half knows that this rank has entered the dispatch after it.
  const std::size_t half = as_size(half_of_epoch(counts_epoch_)) * as_size(n_);
  const std::size_t message_bytes = lies_.count_message_words * sizeof(std::int32_t);
  std::uint64_t* const come = words(lies_.signals.counts) + half;
  for (std::int32_t i = 0; i < n_; ++i) {
    const std::int32_t rank = (me_ + i) % n_;
    rma_.put_signal(memory_ + lies_.counts_in + (half + as_size(me_)) * message_bytes,
                    memory_ + lies_.counts_out + as_size(rank) * message_bytes, message_bytes,
                    come + me_, counts_epoch_, SignalOp::set, rank, 0, false);
  }
  std::vector<Awaited> all;
  for (std::int32_t rank = 0; rank < n_; ++rank)
    all.push_back({rank, rank});
  wait_for_all(
      all, [&](std::int32_t rank) { return load(come + rank) == counts_epoch_; },
      "dispatch: counts", times);
  std::fill(expert_counts_.begin(), expert_counts_.end(), 0);
  for (std::int32_t rank = 0; rank < n_; ++rank) {
    const auto* message = reinterpret_cast<const std::int32_t*>(
        memory_ + lies_.counts_in + (half + as_size(rank)) * message_bytes);
    std::copy(message, message + n_, counts_.begin() + std::ptrdiff_t{rank} * n_);
    for (std::size_t expert = 0; expert < expert_counts_.size(); ++expert)
      expert_counts_[expert] += message[as_size(n_) + expert];
  }
  for (std::int32_t& chosen : expert_counts_)
    chosen = aligned_count(chosen, setup_.shape.expert_alignment);
}

/// Tells those who write to this rank that its memory is free, and waits for those that it writes
/// to: the ranks of its node and of its rail.
void HighThroughput::meet(std::size_t signals, std::uint64_t epoch, const char* step,
                          Times& times) {
  std::vector<Awaited> all;
  for (const std::vector<std::int32_t>* ranks : {&mates_, &rails_})
    for (const std::int32_t rank : *ranks) {
      signal(words(signals) + me_, epoch, rank);
      all.push_back({rank, rank});
    }
  wait_for_all(
      all, [&](std::int32_t rank) { return load(words(signals) + rank) >= epoch; }, step, times);
}

void HighThroughput::send_rows() {
  std::vector<std::int32_t> next(as_size(n_)), relayed(as_size(setup_.n_nodes()));
  for (std::int32_t rank = 0; rank < n_; ++rank)
    next[as_size(rank)] = base_of(counts_.data(), n_, me_, rank);
  for (std::int32_t token = 0; token < tokens(); ++token) {
    const RankMask mask = masks_[as_size(token)];
    for (const std::int32_t rail : rails_) {
      const std::int32_t node = node_of(rail, setup_.node_ranks);
      if (ranks_on_node(mask, node, setup_.node_ranks) != 0)
        put_row(relay_row(node_, relayed[as_size(node)]++), send_row(token), rail);
    }
    for (const std::int32_t rank : mates_) {
      if (!goes_to(mask, rank))
        continue;
      std::int32_t slot = next[as_size(rank)]++;
      const std::int32_t first = base_of(counts_.data(), n_, me_, rank);
      if (mutates(Mutation::Kind::swapped_rows) && count(me_, rank) > 1 && slot < first + 2)
        slot = first + (slot == first ? 1 : 0);
      put_row(receive_row(slot), send_row(token), rank);
    }
  }
}

void HighThroughput::signal_rows() {
  order();
  for (const std::int32_t rail : rails_)
    signal(words(lies_.signals.relayed) + node_,
           count_word(epoch_, relays_[as_size(node_of(rail, setup_.node_ranks))]), rail);
  for (const std::int32_t rank : mates_)
    if (count(me_, rank) > 0)
      signal(words(lies_.signals.rows) + me_, epoch_, rank);
}

/// Until what each rail brings is there. @param is_there by node
void HighThroughput::wait_for_rails(const std::function<bool(std::int32_t)>& is_there,
                                    const char* step, Times& times) {
  std::vector<Awaited> all;
  for (const std::int32_t rail : rails_)
    all.push_back({rail, rail});
  wait_for_all(
      all, [&](std::int32_t rail) { return is_there(node_of(rail, setup_.node_ranks)); }, step,
      times);
}

void HighThroughput::hand_on(Times& times) {
  wait_for_rails(
      [&](std::int32_t node) {
        return has_come(load(words(lies_.signals.relayed) + node), epoch_);
      },
      "dispatch: rows to hand on", times);
  for (const std::int32_t rail : rails_)
    hand_on_from(node_of(rail, setup_.node_ranks));
}

void HighThroughput::hand_on_from(std::int32_t node) {
  const std::int32_t source = rail_of(me_, node, setup_.node_ranks);
  const std::int32_t rows = count_of(load(words(lies_.signals.relayed) + node));
  std::map<std::int32_t, std::int32_t> next;
  for (const std::int32_t rank : mates_)
    next[rank] = base_of(counts_.data(), n_, source, rank);
  relayed_[as_size(node)].clear();
  for (std::int32_t index = 0; index < rows; ++index) {
    const std::byte* const row = relay_row(node, index);
    if (!is_token(layout_.source(row)))
      continue;
    const RankMask ranks = ranks_of_token(setup_.shape, layout_.experts(row));
    relayed_[as_size(node)].push_back(
        {layout_.source(row).token, ranks_on_node(ranks, node_, setup_.node_ranks)});
    for (const std::int32_t rank : mates_)
      if (goes_to(ranks, rank))
        put(receive_row(next[rank]++), row, layout_.stride_bytes(), rank);
  }
  order();
  for (const std::int32_t rank : mates_)
    if (count(source, rank) > 0)
      signal(words(lies_.signals.rows) + source, epoch_, rank);
}

void HighThroughput::wait_for_rows(Times& times) {
  std::vector<Awaited> all;
  for (std::int32_t source = 0; source < n_; ++source)
    if (count(source, me_) > 0)
      all.push_back({source, node_of(source, setup_.node_ranks) == node_
                                 ? source
                                 : rail_of(source, node_, setup_.node_ranks)});
  wait_for_all(
      all, [&](std::int32_t source) { return load(words(lies_.signals.rows) + source) >= epoch_; },
      "dispatch: rows", times);
}

std::vector<std::byte*> HighThroughput::received_rows() const {
  std::vector<std::byte*> rows;
  const std::int32_t received = rows_of(counts_.data(), n_, me_);
  for (std::int32_t row = 0; row < received; ++row)
    rows.push_back(receive_row(row));
  return rows;
}

std::optional<std::string> HighThroughput::wrong_counts_or_gaps(std::size_t rows) const {
  if (expert_counts_ != expected_expert_counts(setup_.shape, *setup_.routing, me_))
    return "the counts of its experts are not those of the routing";
  const std::size_t used = rows * layout_.stride_bytes();
  const std::size_t all = as_size(setup_.shape.max_rows()) * layout_.stride_bytes();
  if (const auto at = first_written(memory_ + lies_.receive + used, all - used))
    return fmt::format("byte {} behind its {} rows was written", *at, rows);
  return std::nullopt;
}

std::unique_ptr<Backend> make_host_high_throughput(Rma& rma, std::byte* memory, const Setup& setup,
                                                   Mutation mutation) {
  return std::make_unique<HighThroughput>(rma, memory, setup, std::move(mutation));
}

} // namespace shmemctl::moe
