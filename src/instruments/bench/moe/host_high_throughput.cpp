// High throughput on the host. Counts are exchanged first, so that every row has its final place
// before it is sent.
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <map>

#include "src/instruments/bench/moe/host_backend.h"

namespace shmemctl::moe {

class HighThroughput final : public HostBackend {
public:
  HighThroughput(Rma& rma, std::byte* memory, const Setup& setup, Mutation mutation)
      : HostBackend(rma, memory, setup, std::move(mutation)), n_(setup.shape.n_ranks),
        node_(node_of(me_, setup.node_ranks)), counts_(as_size(n_) * as_size(n_)),
        expert_counts_(as_size(setup.shape.local_experts())), relayed_(as_size(setup.n_nodes())) {
    for (std::int32_t i = 0; i < setup.node_ranks; ++i) // itself first, then the others in turn
      node_peers_.push_back(node_ * setup.node_ranks + (me_ + i) % setup.node_ranks);
    for (std::int32_t token = 0; setup.bias && token < tokens(); ++token)
      biases_.push_back(bias_of(setup_, me_, token));
    for (std::int32_t node = 0; node < setup.n_nodes(); ++node)
      if (node != node_)
        rails_.push_back(rail_of(me_, node, setup.node_ranks));
  }

  void poison() override {
    poison_common();
    const std::size_t row = row_fields_.stride_bytes(), back = back_row_bytes();
    const std::size_t all = as_size(setup_.shape.max_rows());
    std::memset(memory_ + layout_.receive, static_cast<int>(poison_byte), all * row);
    std::memset(memory_ + layout_.back, static_cast<int>(poison_byte), all * back);
    if (rails_.empty())
      return;
    const std::size_t crossing = as_size(setup_.n_nodes()) * as_size(setup_.shape.max_tokens);
    std::memset(memory_ + layout_.relay, static_cast<int>(poison_byte), crossing * row);
    std::memset(memory_ + layout_.sums_in, static_cast<int>(poison_byte), crossing * back);
  }

  Times dispatch(bool cached) override;
  void run_experts() override;
  Times combine() override;

private:
  static std::size_t as_size(std::int32_t value) { return static_cast<std::size_t>(value); }
  std::byte* receive_row(std::int32_t row) const {
    return memory_ + layout_.receive + as_size(row) * row_fields_.stride_bytes();
  }
  std::byte* relay_row(std::int32_t node, std::int32_t index) const {
    return memory_ + layout_.relay + token_of_node(node, index) * row_fields_.stride_bytes();
  }
  std::size_t token_of_node(std::int32_t node, std::int32_t token) const {
    return as_size(node) * as_size(setup_.shape.max_tokens) + as_size(token);
  }
  std::byte* value_row(std::size_t buffer, std::size_t index) const {
    return memory_ + buffer + index * back_row_bytes();
  }
  /// In the memory of the rank that adds up: where the rank with local index `local` puts its
  /// result for a token of `node`. The token's rank has the same local index as the rank that adds
  /// up.
  std::byte* output_row_in(std::int32_t local, std::int32_t node, std::int32_t token) const {
    return value_row(layout_.back,
                     as_size(local * setup_.n_nodes()) * as_size(setup_.shape.max_tokens) +
                         token_of_node(node, token));
  }
  const std::uint16_t* values(const std::byte* row) const {
    return reinterpret_cast<const std::uint16_t*>(row);
  }
  std::int32_t count(std::int32_t source, std::int32_t destination) const {
    return counts_[as_size(source * n_ + destination)];
  }

  void make_plan();
  void exchange_counts(Times& times);
  void wait_until_ready(std::size_t signals, std::uint64_t epoch, const char* step, Times& times);
  void send_rows();
  void signal_rows();
  void wait_for_rails(const std::function<bool(std::int32_t)>& is_there, const char* step,
                      Times& times);
  void forward(Times& times);
  void forward_from(std::int32_t node);
  void wait_for_rows(Times& times);
  void weigh(const std::byte* row, float* out) const;
  void send_outputs();
  void add_up_for_rails();
  void add_up_own(Times& times);

  std::vector<std::byte*> received_rows() const override;
  std::optional<std::string> wrong_counts_or_gaps(std::size_t rows) const override;

  /// A token of a rail's rank that has arrived at this node, and the ranks of this node that it
  /// goes to.
  struct Relayed {
    std::int32_t token;
    RankMask local;
  };

  const std::int32_t n_, node_;
  std::vector<std::int32_t> node_peers_, rails_;
  std::vector<std::vector<std::uint16_t>> biases_; ///< by token
  std::vector<std::int32_t> counts_;               ///< [source][destination]
  std::vector<std::int32_t> expert_counts_;
  std::vector<std::int32_t> relays_;          ///< by node: rows that go to that node
  std::vector<std::vector<Relayed>> relayed_; ///< by node
  std::uint64_t counts_epoch_ = 0, epoch_ = 0, back_epoch_ = 0;
};

Times HighThroughput::dispatch(bool cached) {
  Times times = no_times();
  const Clock::time_point begin = Clock::now();
  select_direction(Direction::dispatch);
  ++epoch_;
  if (cached) {
    wait_until_ready(layout_.signals.ready, epoch_, "cached dispatch: readiness", times);
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
  forward(times);
  wait_for_rows(times);
  rma_.quiet(); // the rows to send may change from now on
  times.total_us = us_since(begin);
  times.transfer_us = times.total_us - times.counts_us;
  return times;
}

void HighThroughput::make_plan() {
  const Shape& shape = setup_.shape;
  masks_.clear();
  relays_.assign(as_size(setup_.n_nodes()), 0);
  std::vector<std::int32_t> own_counts(as_size(n_));
  std::vector<std::int32_t> chosen(as_size(shape.n_experts));
  for (std::int32_t token = 0; token < tokens(); ++token) {
    masks_.push_back(ranks_of_token(shape, mine_.choices(token)));
    for (std::int32_t rank = 0; rank < n_; ++rank)
      own_counts[as_size(rank)] += goes_to(masks_.back(), rank) ? 1 : 0;
    for (std::int32_t node = 0; node < setup_.n_nodes(); ++node)
      relays_[as_size(node)] += ranks_on_node(masks_.back(), node, setup_.node_ranks) != 0 ? 1 : 0;
    for (std::int32_t k = 0; k < shape.top_k; ++k)
      if (const std::int32_t expert = mine_.choices(token)[k]; expert >= 0)
        ++chosen[as_size(expert)];
  }
  auto* out = reinterpret_cast<std::int32_t*>(memory_ + layout_.counts_out);
  for (std::int32_t rank = 0; rank < n_; ++rank) {
    out = std::copy(own_counts.begin(), own_counts.end(), out);
    const auto first = chosen.begin() + shape.first_expert(rank);
    out = std::copy(first, first + shape.local_experts(), out);
  }
}

void HighThroughput::exchange_counts(Times& times) {
  ++counts_epoch_;
  // A rank writes the other buffer only after this rank has entered the next dispatch.
  const std::size_t buffer = as_size(buffer_of_epoch(counts_epoch_)) * as_size(n_);
  const std::size_t message_bytes = layout_.count_message_words * sizeof(std::int32_t);
  std::uint64_t* const come = words(layout_.signals.counts) + buffer;
  for (std::int32_t i = 0; i < n_; ++i) {
    const std::int32_t rank = (me_ + i) % n_;
    rma_.put_signal(memory_ + layout_.counts_in + (buffer + as_size(me_)) * message_bytes,
                    memory_ + layout_.counts_out + as_size(rank) * message_bytes, message_bytes,
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
        memory_ + layout_.counts_in + (buffer + as_size(rank)) * message_bytes);
    std::copy(message, message + n_, counts_.begin() + std::ptrdiff_t{rank} * n_);
    for (std::size_t expert = 0; expert < expert_counts_.size(); ++expert)
      expert_counts_[expert] += message[as_size(n_) + expert];
  }
  for (std::int32_t& chosen : expert_counts_)
    chosen = aligned_count(chosen, setup_.shape.expert_alignment);
}

/// Tells the ranks that write to this rank that its memory is free, and waits for the ranks that it
/// writes to. Both are the ranks of its node and of its rail.
void HighThroughput::wait_until_ready(std::size_t signals, std::uint64_t epoch, const char* step,
                                      Times& times) {
  std::vector<Awaited> all;
  for (const std::vector<std::int32_t>* ranks : {&node_peers_, &rails_})
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
    for (const std::int32_t rank : node_peers_) {
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
  fence_rows();
  for (const std::int32_t rail : rails_)
    signal(words(layout_.signals.relayed) + node_,
           count_word(epoch_, relays_[as_size(node_of(rail, setup_.node_ranks))]), rail);
  for (const std::int32_t rank : node_peers_)
    if (count(me_, rank) > 0)
      signal(words(layout_.signals.rows) + me_, epoch_, rank);
}

/// Waits until the data of each rail has arrived.
/// @param is_there takes a node
void HighThroughput::wait_for_rails(const std::function<bool(std::int32_t)>& is_there,
                                    const char* step, Times& times) {
  std::vector<Awaited> all;
  for (const std::int32_t rail : rails_)
    all.push_back({rail, rail});
  wait_for_all(
      all, [&](std::int32_t rail) { return is_there(node_of(rail, setup_.node_ranks)); }, step,
      times);
}

void HighThroughput::forward(Times& times) {
  wait_for_rails(
      [&](std::int32_t node) {
        return has_come(load(words(layout_.signals.relayed) + node), epoch_);
      },
      "dispatch: rows to forward", times);
  for (const std::int32_t rail : rails_)
    forward_from(node_of(rail, setup_.node_ranks));
}

void HighThroughput::forward_from(std::int32_t node) {
  const std::int32_t source = rail_of(me_, node, setup_.node_ranks);
  const std::int32_t rows = count_of(load(words(layout_.signals.relayed) + node));
  std::map<std::int32_t, std::int32_t> next;
  for (const std::int32_t rank : node_peers_)
    next[rank] = base_of(counts_.data(), n_, source, rank);
  relayed_[as_size(node)].clear();
  for (std::int32_t index = 0; index < rows; ++index) {
    const std::byte* const row = relay_row(node, index);
    if (!is_token(row_fields_.source(row)))
      continue;
    const RankMask ranks = ranks_of_token(setup_.shape, row_fields_.experts(row));
    relayed_[as_size(node)].push_back(
        {row_fields_.source(row).token, ranks_on_node(ranks, node_, setup_.node_ranks)});
    for (const std::int32_t rank : node_peers_)
      if (goes_to(ranks, rank))
        put(receive_row(next[rank]++), row, row_fields_.stride_bytes(), rank);
  }
  fence_rows();
  for (const std::int32_t rank : node_peers_)
    if (count(source, rank) > 0)
      signal(words(layout_.signals.rows) + source, epoch_, rank);
}

void HighThroughput::wait_for_rows(Times& times) {
  std::vector<Awaited> all;
  for (std::int32_t source = 0; source < n_; ++source)
    if (count(source, me_) > 0)
      all.push_back({source, node_of(source, setup_.node_ranks) == node_
                                 ? source
                                 : rail_of(source, node_, setup_.node_ranks)});
  wait_for_all(
      all,
      [&](std::int32_t source) { return load(words(layout_.signals.rows) + source) >= epoch_; },
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
  const std::size_t used = rows * row_fields_.stride_bytes();
  const std::size_t all = as_size(setup_.shape.max_rows()) * row_fields_.stride_bytes();
  if (const auto at = first_written(memory_ + layout_.receive + used, all - used))
    return fmt::format("byte {} after its {} rows was written", *at, rows);
  return std::nullopt;
}

std::unique_ptr<Backend> make_host_high_throughput(Rma& rma, std::byte* memory, const Setup& setup,
                                                   Mutation mutation) {
  return std::make_unique<HighThroughput>(rma, memory, setup, std::move(mutation));
}

void HighThroughput::run_experts() {
  std::size_t index = 0;
  for (const std::byte* row : received_rows()) {
    const std::vector<std::uint16_t> read = read_row(setup_, row);
    const float factor = rank_factor(setup_.shape, row_fields_.experts(row), me_);
    auto* const out = reinterpret_cast<std::uint16_t*>(value_row(layout_.results, index++));
    std::transform(read.begin(), read.end(), out,
                   [factor](std::uint16_t x) { return transformed(x, factor); });
    if (setup_.combined_weights)
      weigh(row, weights_of(value_row(layout_.results, index - 1)));
  }
}

/// Computes the weights that this rank returns for a row: 0 for experts of other ranks.
void HighThroughput::weigh(const std::byte* row, float* out) const {
  const std::int32_t* const experts = row_fields_.experts(row);
  for (std::int32_t k = 0; k < setup_.shape.top_k; ++k)
    out[k] = setup_.shape.local_expert(experts[k], me_) == no_expert
                 ? 0
                 : weight_back(row_fields_.weights(row)[k], experts[k]);
}

Times HighThroughput::combine() {
  Times times = no_times();
  const Clock::time_point begin = Clock::now();
  select_direction(Direction::combine);
  ++back_epoch_;
  wait_until_ready(layout_.signals.ready_back, back_epoch_, "combine: readiness", times);
  times.counts_us = us_since(begin);
  times.begin_wait_us = times.wait_us;
  times.arrival_us = *std::max_element(times.wait_us.begin(), times.wait_us.end());
  send_outputs();
  std::vector<Awaited> all;
  for (const std::int32_t rank : node_peers_)
    all.push_back({rank, rank});
  wait_for_all(
      all,
      [&](std::int32_t rank) {
        return load(words(layout_.signals.rows_back) + rank) >= back_epoch_;
      },
      "combine: rows", times);
  add_up_for_rails();
  add_up_own(times);
  rma_.quiet();
  times.total_us = us_since(begin);
  times.transfer_us = times.total_us - times.counts_us;
  return times;
}

/// Sends each result to the rank of this node that adds up for the row's source.
void HighThroughput::send_outputs() {
  const std::int32_t local = me_ % setup_.node_ranks;
  std::size_t index = 0;
  for (const std::byte* row : received_rows()) {
    const RowSource source = row_fields_.source(row);
    const std::byte* const result = value_row(layout_.results, index++);
    if (is_token(source))
      put(output_row_in(local, node_of(source.rank, setup_.node_ranks), source.token), result,
          back_row_bytes(), rail_of(source.rank, node_, setup_.node_ranks));
  }
  fence_rows();
  for (const std::int32_t rank : node_peers_)
    signal(words(layout_.signals.rows_back) + me_, back_epoch_, rank);
}

/// Adds up what this node's ranks return for tokens of other nodes, so that one row per token
/// crosses to the other node.
void HighThroughput::add_up_for_rails() {
  const auto channels = as_size(setup_.shape.hidden);
  for (const std::int32_t home : rails_) {
    const std::int32_t node = node_of(home, setup_.node_ranks);
    for (const Relayed& relayed : relayed_[as_size(node)]) {
      std::vector<const std::uint16_t*> rows;
      for (std::int32_t local = 0; local < setup_.node_ranks; ++local)
        if (goes_to(relayed.local, local))
          rows.push_back(values(output_row_in(local, node, relayed.token)));
      std::byte* const sum = value_row(layout_.sums, token_of_node(node, relayed.token));
      add_up(rows, nullptr, channels, reinterpret_cast<std::uint16_t*>(sum));
      add_up_weights(rows, weights_of(sum));
      put(value_row(layout_.sums_in, token_of_node(node_, relayed.token)), sum, back_row_bytes(),
          home);
    }
  }
  fence_rows();
  for (const std::int32_t home : rails_)
    signal(words(layout_.signals.nodes_back) + node_, back_epoch_, home);
}

void HighThroughput::add_up_own(Times& times) {
  wait_for_rails(
      [&](std::int32_t node) {
        return load(words(layout_.signals.nodes_back) + node) >= back_epoch_;
      },
      "combine: sums of other nodes", times);
  const auto channels = as_size(setup_.shape.hidden);
  std::vector<std::byte> own(back_row_bytes());
  for (std::int32_t token = 0; token < tokens(); ++token) {
    std::vector<const std::uint16_t*> rows, totals;
    const RankMask mask = masks_[as_size(token)];
    for (std::int32_t local = 0; local < setup_.node_ranks; ++local)
      if (goes_to(mask, node_ * setup_.node_ranks + local))
        rows.push_back(values(output_row_in(local, node_, token)));
    if (!rails_.empty()) { // this node's sum is rounded as those of the other nodes are
      add_up(rows, nullptr, channels, reinterpret_cast<std::uint16_t*>(own.data()));
      add_up_weights(rows, weights_of(own.data()));
      for (std::int32_t node = 0; node < setup_.n_nodes(); ++node)
        if (ranks_on_node(mask, node, setup_.node_ranks) != 0)
          totals.push_back(node == node_
                               ? values(own.data())
                               : values(value_row(layout_.sums_in, token_of_node(node, token))));
      rows = totals;
    }
    add_up_weights(rows, combined_weights_of(token));
    add_up(rows, setup_.bias ? biases_[as_size(token)].data() : nullptr, channels,
           combined_row(token));
  }
}

} // namespace shmemctl::moe
