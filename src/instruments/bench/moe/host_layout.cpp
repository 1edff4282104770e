#include "src/instruments/bench/moe/host_layout.h"

#include <algorithm>

namespace shmemctl::moe {

namespace {

std::size_t as_size(std::int32_t value) {
  return static_cast<std::size_t>(value);
}

/// The most rows that the experts of any rank return. With a weighted combine (low latency) they
/// return one for each choice, and the choices are counted in the routing, which all ranks know.
/// Otherwise they return one for each received row, of which there are at most max_rows().
std::size_t max_results(const Setup& setup) {
  const Shape& shape = setup.shape;
  if (setup.combine != Combine::weighted)
    return as_size(shape.max_rows());
  std::vector<std::size_t> by_rank(as_size(shape.n_ranks));
  for (const RankRouting& sent : *setup.routing)
    for (const std::int32_t expert : sent.experts)
      if (expert >= 0)
        ++by_rank[as_size(shape.rank_of_expert(expert))];
  return *std::max_element(by_rank.begin(), by_rank.end());
}

/// The number of rows packed by expert: the most that any rank has with this routing.
std::size_t max_packed(const Setup& setup) {
  std::int32_t most = 0;
  for (std::int32_t rank = 0; setup.by_expert && rank < setup.shape.n_ranks; ++rank)
    most = std::max(most, expected_packed(setup.shape, *setup.routing, rank).offsets.back());
  return as_size(most);
}

/// Adds buffers to the layout, and records the formula of each size.
class Builder {
public:
  Builder(HostLayout& layout) : layout_(layout) {}
  std::size_t rows(const std::string& name, const std::string& formula, std::size_t count,
                   std::size_t row_bytes) {
    const std::size_t size_bytes = count * row_bytes;
    if (size_bytes > 0)
      layout_.uses.push_back({name, formula, size_bytes});
    return layout_.buffers.add(name, size_bytes);
  }
  std::size_t words(const std::string& name, std::int32_t count) {
    return layout_.buffers.add(name, as_size(count) * sizeof(std::uint64_t));
  }

private:
  HostLayout& layout_;
};

} // namespace

HostLayout::HostLayout(const Setup& setup) {
  const Shape& shape = setup.shape;
  const bool high = setup.mode == Mode::high_throughput;
  const std::size_t row = RowFields(setup).stride_bytes();
  const std::size_t value_row = RowFields::back_bytes(setup);
  const std::size_t ranks = as_size(shape.n_ranks), tokens = as_size(shape.max_tokens);
  // Whether rows that cross nodes are forwarded; low latency sends them directly.
  const bool relays = high && setup.n_nodes() > 1;
  const std::size_t nodes = as_size(setup.n_nodes());
  const std::string value_words = // formula of a returned row's size: RowFields::back_bytes()
      setup.combined_weights ? "(hidden * 2 + topk * 4, rounded up to 16)" : "hidden * 2";
  Builder add(*this);
  for (std::size_t* words :
       {&signals.ready, &signals.ready_back, &signals.relayed, &signals.nodes_back})
    *words = add.words("signals", shape.n_ranks);
  for (std::size_t* words : {&signals.counts, &signals.rows, &signals.rows_back})
    *words = add.words("signals", 2 * shape.n_ranks);
  count_message_words = ranks + as_size(shape.local_experts());
  const std::size_t message = count_message_words * sizeof(std::int32_t);
  counts_out =
      add.rows("counts to send", "ranks * (ranks + local_experts) * 4", high ? ranks : 0, message);
  counts_in = add.rows("received counts", "2 * ranks * (ranks + local_experts) * 4",
                       high ? 2 * ranks : 0, message);
  send_rows = add.rows("rows to send", "max_tokens * row", tokens, row);
  receive =
      add.rows("received rows", high ? "ranks * max_tokens * row" : "2 * ranks * max_tokens * row",
               (high ? 1 : 2) * ranks * tokens, row);
  relay = add.rows("rows to forward", "nodes * max_tokens * row", relays ? nodes * tokens : 0, row);
  packed_rows = max_packed(setup);
  packed = add.rows("rows packed by expert", "max choices of a rank's experts, aligned * row",
                    packed_rows, row);
  result_rows = std::max(max_results(setup), packed_rows);
  results =
      add.rows("experts' results",
               setup.by_expert                      ? "packed rows * hidden * 2"
               : setup.combine == Combine::weighted ? "max choices of a rank's experts * hidden * 2"
                                                    : "ranks * max_tokens * " + value_words,
               result_rows, value_row);
  const std::size_t per_token = setup.combine == Combine::weighted ? as_size(shape.top_k) : ranks;
  back = add.rows("rows that come back",
                  high                                 ? "ranks * max_tokens * " + value_words
                  : setup.combine == Combine::weighted ? "2 * topk * max_tokens * hidden * 2"
                                                       : "2 * ranks * max_tokens * hidden * 2",
                  (high ? 1 : 2) * per_token * tokens, value_row);
  sums = add.rows("sums for other nodes", "nodes * max_tokens * " + value_words,
                  relays ? nodes * tokens : 0, value_row);
  sums_in = add.rows("sums of other nodes", "nodes * max_tokens * " + value_words,
                     relays ? nodes * tokens : 0, value_row);
}

} // namespace shmemctl::moe
