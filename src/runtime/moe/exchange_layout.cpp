#include "src/runtime/moe/exchange_layout.h"

#include <algorithm>

#include "kernels/moe/low_latency_internode.h"
#include "src/model/moe/plan.h"

namespace shmemctl::moe {

namespace {

std::size_t as_size(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

std::size_t packed_rows_of(const ExchangeConfig& config) {
  return config.by_expert ? as_size(max_packed_rows(config.shape)) : 0;
}

std::vector<const GpuRegion*> not_empty(std::vector<const GpuRegion*> regions) {
  regions.erase(std::remove_if(regions.begin(), regions.end(),
                               [](const GpuRegion* region) { return region->size_bytes == 0; }),
                regions.end());
  return regions;
}

} // namespace

GpuRegion GpuRegions::add(std::size_t part_bytes) {
  constexpr std::size_t alignment = 256;
  const std::size_t offset = (size_bytes + guard_bytes_ + alignment - 1) / alignment * alignment;
  const std::size_t whole = (part_bytes + 15) / 16 * 16;
  size_bytes = offset + whole + guard_bytes_;
  return {offset, whole};
}

InternodeShape internode_shape(const ExchangeConfig& config, const MoePath& path) {
  return {config.shape, config.format, path.node_ranks, 1, config.combined_weights};
}

ExchangeLayout::ExchangeLayout(const ExchangeConfig& config, const MoePath& path,
                               std::size_t guard_bytes)
    : GpuRegions(guard_bytes) {
  const Shape& shape = config.shape;
  const bool is_low_latency = config.is_low_latency();
  const bool by_low_latency_network = path.is_internode() && is_low_latency;
  const bool by_rails = path.is_internode() && !is_low_latency;
  const std::size_t tokens = as_size(shape.max_tokens), max_rows = as_size(shape.max_rows());
  const std::size_t halves = is_low_latency ? 2 : 1;
  const std::size_t record = as_size(MetadataLayout(shape, config.scales()).bytes());
  const std::size_t values = as_size(shape.value_bytes(config.format));
  const std::size_t hidden = as_size(shape.hidden) * sizeof(std::uint16_t);
  const std::size_t of_row = as_size(config.outputs_per_row());
  const std::size_t choices = as_size(shape.top_k) * sizeof(std::int32_t);
  const std::size_t packed = packed_rows_of(config);

  flags = add(is_low_latency ? sizeof(LowLatencyFlags) : sizeof(CallFlags));
  expert_count_flags = add(2 * as_size(shape.n_experts) * sizeof(std::uint64_t));
  rows = add(halves * max_rows * values);
  records = add(halves * max_rows * record);
  outputs = add(config.by_expert ? packed * hidden : max_rows * of_row * hidden);
  output_weights = add(config.combined_weights ? max_rows * choices : 0);
  output_rows = add(config.by_expert ? tokens * choices : 0);
  packed_rows = add(packed * values);
  packed_records = add(packed * record);

  const std::string phases = is_low_latency ? "2 * " : "";
  const std::string times_top_k = of_row > 1 ? " * top_k" : "";
  uses = {
      {"words", "fixed, and 16 B * experts", flags.size_bytes + expert_count_flags.size_bytes},
      {"received rows", phases + "ranks * max_tokens * hidden * bytes of a value", rows.size_bytes},
      {"received records",
       phases + "ranks * max_tokens * 4 B * (words of scales + 2 * top_k + 2), filled up to 16 B",
       records.size_bytes},
      {"outputs of experts",
       config.by_expert ? "packed rows * hidden * 2 B"
                        : "ranks * max_tokens" + times_top_k + " * hidden * 2 B",
       outputs.size_bytes}};
  if (config.combined_weights)
    uses.push_back(
        {"weights that come back", "ranks * max_tokens * top_k * 4 B", output_weights.size_bytes});
  if (config.by_expert)
    uses.push_back({"rows packed by expert",
                    "packed rows = ranks * max_tokens * min(top_k, local_experts) + local_experts "
                    "* (alignment - 1); each with its record",
                    packed_rows.size_bytes + packed_records.size_bytes});

  if (by_rails) {
    const InternodeShape crossing = internode_shape(config, path);
    const std::size_t others = as_size(crossing.other_nodes());
    const std::size_t messages =
        2 * as_size(shape.n_ranks) * as_size(crossing.message_words()) * sizeof(std::int32_t);
    const std::size_t words = others * as_size(crossing.chunks()) * sizeof(std::uint64_t);
    rails = add(sizeof(RailFlags));
    counts_out = add(messages);
    counts_in = add(messages);
    row_signals = add(words);
    sum_signals = add(words);
    rows_out = add(others * tokens * as_size(crossing.crossing_bytes()));
    rows_in = add(others * tokens * as_size(crossing.crossing_bytes()));
    sums_out = add(others * tokens * as_size(crossing.sum_bytes()));
    sums_in = add(others * tokens * as_size(crossing.sum_bytes()));
    uses.push_back({"words and messages between nodes",
                    "fixed, 16 B * ranks * (ranks + nodes + experts of a rank, rounded up to a "
                    "multiple of 4), and 16 B * (nodes - 1) * max_tokens",
                    rails.size_bytes + 2 * counts_out.size_bytes + 2 * row_signals.size_bytes});
    uses.push_back({"rows that cross",
                    "2 * (nodes - 1) * max_tokens * (hidden * bytes of a value + 4 B * (scales + 2 "
                    "* top_k + 1 + ranks of a node), filled up to 16 B)",
                    2 * rows_in.size_bytes});
    uses.push_back(
        {"sums that cross",
         config.combined_weights
             ? "2 * (nodes - 1) * max_tokens * (hidden * 2 B + 4 B * top_k, filled up to 16 B)"
             : "2 * (nodes - 1) * max_tokens * hidden * 2 B",
         2 * sums_in.size_bytes});
  }

  if (by_low_latency_network) {
    const bool fp8 = config.format == Format::fp8;
    sent_row_signals = add(4 * max_rows * sizeof(std::uint64_t));
    output_signals = add(max_rows * of_row * sizeof(std::uint64_t));
    rows_out = add(2 * tokens * values);
    records_out = add(2 * max_rows * record);
    returned_outputs = add(max_rows * of_row * hidden);
    cast_rows = add(fp8 ? tokens * as_size(shape.hidden) : 0);
    cast_scales = add(fp8 ? tokens * as_size(shape.scales_per_row()) * sizeof(float) : 0);
    uses.push_back({"words after rows", "ranks * max_tokens * (32 B + 8 B" + times_top_k + ")",
                    sent_row_signals.size_bytes + output_signals.size_bytes});
    uses.push_back({"rows and records to send",
                    "2 * max_tokens * (hidden * bytes of a value + ranks * a record)",
                    rows_out.size_bytes + records_out.size_bytes});
    uses.push_back({"outputs that come back",
                    "ranks * max_tokens" + times_top_k + " * hidden * 2 B",
                    returned_outputs.size_bytes});
  }
}

std::vector<const GpuRegion*> ExchangeLayout::received() const {
  return not_empty(
      {&rows, &records, &packed_rows, &packed_records, &rows_in, &sums_in, &returned_outputs});
}

std::vector<const GpuRegion*> ExchangeLayout::sent() const {
  return not_empty({&rows_out, &sums_out, &records_out});
}

PlanLayout::PlanLayout(const ExchangeConfig& config, const MoePath& path, std::size_t guard_bytes,
                       std::size_t begin)
    : GpuRegions(guard_bytes, begin) {
  const Shape& shape = config.shape;
  const std::size_t tokens = as_size(shape.max_tokens), ranks = as_size(shape.n_ranks);
  const std::size_t local = as_size(shape.local_experts());
  constexpr std::size_t word = sizeof(std::int32_t);
  slots = add(tokens * ranks * word);
  bases = add(ranks * word);
  counts = add(ranks * ranks * word);
  expert_counts = add(local * word);
  uses = {{"slots of tokens", "max_tokens * ranks * 4 B", slots.size_bytes}};
  if (config.by_expert) {
    packed_counts = add(local * word);
    packed_offsets = add((local + 1) * word);
  }
  if (config.by_expert && path.is_internode()) {
    output_rows_by_slot = add(ranks * tokens * as_size(shape.top_k) * word);
    uses.push_back({"places of packed rows", "ranks * max_tokens * top_k * 4 B",
                    output_rows_by_slot.size_bytes});
  }
  if (path.is_internode() && !config.is_low_latency()) {
    const std::size_t nodes = as_size(internode_shape(config, path).n_nodes());
    all_bases = add(ranks * ranks * word);
    crossing_slots = add(tokens * nodes * word);
    crossing_tokens = add(tokens * nodes * word);
    crossing_counts = add(ranks * nodes * word);
  }
}

std::vector<const GpuRegion*> PlanLayout::all() const {
  return not_empty({&slots, &bases, &counts, &expert_counts, &packed_counts, &packed_offsets,
                    &output_rows_by_slot, &all_bases, &crossing_slots, &crossing_tokens,
                    &crossing_counts});
}

} // namespace shmemctl::moe
