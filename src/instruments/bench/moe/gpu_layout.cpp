#include "src/instruments/bench/moe/gpu_layout.h"

#include <algorithm>

namespace shmemctl::moe {

Scales scales_of(const Setup& setup) {
  if (setup.format == Format::bf16)
    return Scales::none;
  if (!setup.power_scales)
    return Scales::float32;
  return setup.mode == Mode::low_latency ? Scales::ue8m0 : Scales::power;
}

std::int32_t scale_bytes_of(const Setup& setup) {
  return scales_of(setup) == Scales::ue8m0 ? 1 : 4;
}

GpuRegion GpuLayout::add(std::size_t part_bytes) {
  constexpr std::size_t alignment = 256;
  const std::size_t offset = (size_bytes + gpu_guard_bytes + alignment - 1) / alignment * alignment;
  const std::size_t whole = (part_bytes + 15) / 16 * 16;
  size_bytes = offset + whole + gpu_guard_bytes;
  return {offset, whole};
}

GpuLayout::GpuLayout(const Setup& setup) {
  const Shape& shape = setup.shape;
  const bool is_low_latency = setup.mode == Mode::low_latency;
  const auto count = [](std::int32_t number) { return static_cast<std::size_t>(number); };
  const std::size_t rows_there = count(shape.max_rows()) * (is_low_latency ? 2 : 1);
  const std::size_t record = count(MetadataLayout(shape, scales_of(setup)).bytes());
  const std::size_t hidden = count(shape.hidden) * sizeof(std::uint16_t);
  const std::size_t of_row = setup.combine == Combine::weighted ? count(shape.top_k) : 1;
  // The same on all ranks, although each has its own number of tokens.
  const std::size_t tokens = count(shape.max_tokens), ranks = count(shape.n_ranks);

  flags = add(is_low_latency ? sizeof(LowLatencyFlags) : sizeof(CallFlags));
  expert_count_flags = add(2 * count(shape.n_experts) * sizeof(std::uint64_t));
  rows = add(rows_there * count(shape.value_bytes(setup.format)));
  records = add(rows_there * record);
  const auto packed = static_cast<std::size_t>(setup.by_expert ? max_packed_rows(shape) : 0);
  outputs = add(setup.by_expert ? packed * hidden : count(shape.max_rows()) * of_row * hidden);
  const std::string phases = is_low_latency ? "2 * " : "";
  uses = {
      {"words", "fixed, and 16 B * experts", flags.size_bytes + expert_count_flags.size_bytes},
      {"received rows", phases + "ranks * max_tokens * hidden * bytes of a value", rows.size_bytes},
      {"received records",
       phases + "ranks * max_tokens * 4 B * (scales + 2 * top_k + 2), filled up to 16 B",
       records.size_bytes},
      {"outputs of experts",
       setup.by_expert
           ? "packed rows * hidden * 2 B"
           : std::string("ranks * max_tokens * ") + (of_row > 1 ? "top_k * " : "") + "hidden * 2 B",
       outputs.size_bytes}};

  values = add(tokens * hidden);
  casts = add(setup.format == Format::fp8 && !is_low_latency ? tokens * count(shape.hidden) : 0);
  scales = add(setup.format == Format::fp8 && !is_low_latency
                   ? tokens * count(shape.scales_per_row()) * sizeof(float)
                   : 0);
  experts = add(tokens * count(shape.top_k) * sizeof(std::int32_t));
  weights = add(tokens * count(shape.top_k) * sizeof(float));
  bias = add(setup.bias ? tokens * hidden : 0);
  results = add(tokens * hidden);
  slots = add(tokens * ranks * sizeof(std::int32_t));
  bases = add(ranks * sizeof(std::int32_t));
  counts = add(ranks * ranks * sizeof(std::int32_t));
  expert_counts = add(count(shape.local_experts()) * sizeof(std::int32_t));
  wrong = add(sizeof(Mismatch));
  uses.push_back({"slots of tokens", "max_tokens * ranks * 4 B", slots.size_bytes});
  const std::size_t choices = setup.combined_weights ? count(shape.top_k) * sizeof(float) : 0;
  output_weights = add(count(shape.max_rows()) * choices);
  combined_weights = add(tokens * choices);
  if (setup.combined_weights)
    uses.push_back({"weights that come back", "(ranks + 1) * max_tokens * top_k * 4 B",
                    output_weights.size_bytes + combined_weights.size_bytes});
  if (!setup.by_expert)
    return;
  output_rows = add(tokens * count(shape.top_k) * sizeof(std::int32_t));
  packed_rows = add(packed * count(shape.value_bytes(setup.format)));
  packed_records = add(packed * record);
  packed_counts = add(count(shape.local_experts()) * sizeof(std::int32_t));
  packed_offsets = add((count(shape.local_experts()) + 1) * sizeof(std::int32_t));
  uses.push_back({"rows packed by expert",
                  "packed rows = ranks * max_tokens * min(top_k, local_experts) + local_experts * "
                  "(alignment - 1); each with its record",
                  packed_rows.size_bytes + packed_records.size_bytes});
}

InternodeLayout::InternodeLayout(const Setup& setup, std::int32_t node_ranks)
    : GpuLayout(setup), shape{setup.shape, setup.format, node_ranks, 1, setup.combined_weights} {
  const auto count = [](std::int32_t number) { return static_cast<std::size_t>(number); };
  const std::size_t ranks = count(shape.shape.n_ranks), nodes = count(shape.n_nodes());
  const std::size_t tokens = count(shape.shape.max_tokens), others = count(shape.other_nodes());
  const std::size_t messages = 2 * ranks * count(shape.message_words()) * sizeof(std::int32_t);
  const std::size_t words = others * count(shape.chunks()) * sizeof(std::uint64_t);

  rails = add(sizeof(RailFlags));
  counts_out = add(messages);
  counts_in = add(messages);
  row_signals = add(words);
  sum_signals = add(words);
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
                  rails.size_bytes + 2 * counts_out.size_bytes + 2 * row_signals.size_bytes});
  uses.push_back({"rows that cross",
                  "2 * (nodes - 1) * max_tokens * (hidden * bytes of a value + 4 B * (scales + 2 * "
                  "top_k + 1 + ranks of a node), filled up to 16 B)",
                  2 * rows_in.size_bytes});
  uses.push_back(
      {"sums that cross",
       setup.combined_weights
           ? "2 * (nodes - 1) * max_tokens * (hidden * 2 B + 4 B * top_k, filled up to 16 B)"
           : "2 * (nodes - 1) * max_tokens * hidden * 2 B",
       2 * sums_in.size_bytes});
}

LowLatencyInternodeLayout::LowLatencyInternodeLayout(const Setup& setup) : GpuLayout(setup) {
  const Shape& shape = setup.shape;
  const auto count = [](std::int32_t number) { return static_cast<std::size_t>(number); };
  const std::size_t tokens = count(shape.max_tokens), all_rows = count(shape.max_rows());
  const std::size_t of_row = count(moe::rows_of(shape, setup.combine == Combine::weighted));
  const std::size_t hidden = count(shape.hidden) * sizeof(std::uint16_t);
  const bool fp8 = setup.format == Format::fp8;

  row_signals = add(4 * all_rows * sizeof(std::uint64_t));
  output_signals = add(all_rows * of_row * sizeof(std::uint64_t));
  rows_out = add(2 * tokens * count(shape.value_bytes(setup.format)));
  records_out = add(2 * all_rows * count(MetadataLayout(shape, scales_of(setup)).bytes()));
  back = add(all_rows * of_row * hidden);
  cast_rows = add(fp8 ? tokens * count(shape.hidden) : 0);
  cast_scales = add(fp8 ? tokens * count(shape.scales_per_row()) * sizeof(float) : 0);
  output_rows_by_slot =
      add(setup.by_expert ? all_rows * count(shape.top_k) * sizeof(std::int32_t) : 0);

  const std::string times_top_k = of_row > 1 ? " * top_k" : "";
  uses.push_back({"words after rows", "ranks * max_tokens * (32 B + 8 B" + times_top_k + ")",
                  row_signals.size_bytes + output_signals.size_bytes});
  uses.push_back({"rows and records to send",
                  "2 * max_tokens * (hidden * bytes of a value + ranks * a record)",
                  rows_out.size_bytes + records_out.size_bytes});
  uses.push_back({"outputs that come back", "ranks * max_tokens" + times_top_k + " * hidden * 2 B",
                  back.size_bytes});
  if (setup.by_expert)
    uses.push_back({"places of packed rows", "(ranks + 1) * max_tokens * top_k * 4 B",
                    output_rows.size_bytes + output_rows_by_slot.size_bytes});
}

} // namespace shmemctl::moe
