#include "src/bench/moe/gpu_hybrid_layout.h"

namespace shmemctl::moe {

HybridLayout::HybridLayout(const Setup& setup, std::int32_t node_ranks)
    : GpuLayout(setup), shape{setup.shape, setup.format, node_ranks, 1, setup.weights_home} {
  const auto count = [](std::int32_t number) { return static_cast<std::size_t>(number); };
  const std::size_t ranks = count(shape.shape.n_ranks), nodes = count(shape.n_nodes());
  const std::size_t tokens = count(shape.shape.max_tokens), others = count(shape.other_nodes());
  const std::size_t messages = 2 * ranks * count(shape.message_words()) * sizeof(std::int32_t);
  const std::size_t words = others * count(shape.chunks()) * sizeof(std::uint64_t);

  rails = add(sizeof(RailCells));
  counts_out = add(messages);
  counts_in = add(messages);
  row_words = add(words);
  sum_words = add(words);
  rows_out = add(others * tokens * count(shape.crossing_bytes()));
  rows_in = add(others * tokens * count(shape.crossing_bytes()));
  sums_out = add(others * tokens * count(shape.sum_bytes()));
  sums_in = add(others * tokens * count(shape.sum_bytes()));
  all_bases = add(ranks * ranks * sizeof(std::int32_t));
  crossing_slots = add(tokens * nodes * sizeof(std::int32_t));
  crossing_tokens = add(nodes * tokens * sizeof(std::int32_t));
  crossing_counts = add(ranks * nodes * sizeof(std::int32_t));

  uses.push_back({"words and messages between nodes",
                  "fixed, 16 B * ranks * (ranks + nodes + experts of a rank), and 16 B * (nodes - "
                  "1) * max_tokens",
                  rails.size_bytes + 2 * counts_out.size_bytes + 2 * row_words.size_bytes});
  uses.push_back({"rows that cross",
                  "2 * (nodes - 1) * max_tokens * (hidden * bytes of a value + 4 B * (scales + 2 * "
                  "top_k + 1 + ranks of a node), filled up to 16 B)",
                  2 * rows_in.size_bytes});
  uses.push_back(
      {"sums that cross",
       setup.weights_home
           ? "2 * (nodes - 1) * max_tokens * (hidden * 2 B + 4 B * top_k, filled up to 16 B)"
           : "2 * (nodes - 1) * max_tokens * hidden * 2 B",
       2 * sums_in.size_bytes});
}

} // namespace shmemctl::moe
