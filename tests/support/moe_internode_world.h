// Ranks of a dispatch and combine across nodes, as threads of the host: their memory, their calls,
// and what these must leave.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/moe/high_throughput_internode_combine.cuh"
#include "kernels/moe/high_throughput_internode_dispatch.cuh"
#include "kernels/moe/high_throughput_internode_notify.cuh"
#include "tests/support/moe_host_world.h"

namespace shmemctl::test {

inline constexpr std::uint32_t internode_seed = 20261123;

class InternodeWorld : public MoeHostWorld {
public:
  static constexpr HostShape counting{1, 3};

  /// @param cut PEs of different nodes reach each other by the network only
  InternodeWorld(const moe::InternodeShape& shape, moe::Routing routing, bool cut,
                 double wait_s = 100)
      : MoeHostWorld(shape.shape,
                     shape.format == moe::Format::fp8 ? moe::Scales::float32 : moe::Scales::none,
                     internode_seed, std::move(routing), Offsets(shape).size_bytes, wait_s),
        shape_(shape), offsets_(shape) {
    std::vector<int> nodes;
    for (std::int32_t rank = 0; rank < shape.shape.n_ranks; ++rank)
      nodes.push_back(shape.node_of_rank(rank));
    if (cut)
      kernels_.put_on_nodes(nodes);
    for (std::int32_t rank = 0; rank < shape.shape.n_ranks; ++rank)
      fill(rank);
  }
  /// Between calls: rows that cross in one message from now on.
  void set_chunks(std::int32_t of_dispatch, std::int32_t of_combine) {
    chunk_rows_[0] = of_dispatch;
    chunk_rows_[1] = of_combine;
  }

  /// Called by all threads of a PE's grid; the calls of several ranks run at the same time.
  void notify(const DeviceJob& job) const { notify_of(job, tokens(job.pe)); }
  /// Notify of the first tokens only.
  void notify_of(const DeviceJob& job, std::int32_t count) const {
    const moe::InternodeNotify all{shape_, memory(job), plan(job), count,
                                   at<std::int32_t>(job, offsets_.experts)};
    moe::InternodeCounts(job, all, at<std::int32_t>(job, offsets_.shared)).run();
  }
  void dispatch(const DeviceJob& job) const {
    const moe::InternodeDispatch all{in_chunks(0),
                                     memory(job),
                                     plan(job),
                                     tokens(job.pe),
                                     at<std::byte>(job, offsets_.values),
                                     at<float>(job, offsets_.scales),
                                     at<std::int32_t>(job, offsets_.experts),
                                     at<float>(job, offsets_.weights),
                                     0};
    moe::run_internode_dispatch(job, all);
  }
  void combine(const DeviceJob& job, bool with_bias) const {
    const moe::InternodeCombine all{in_chunks(1),
                                    memory(job),
                                    plan(job),
                                    tokens(job.pe),
                                    with_bias ? at<std::uint16_t>(job, offsets_.bias) : nullptr,
                                    at<std::uint16_t>(job, offsets_.results),
                                    0,
                                    at<float>(job, offsets_.output_weights),
                                    at<float>(job, offsets_.combined_weights)};
    moe::run_internode_combine<4>(job, all);
  }
  /// What was received and what comes back, before a dispatch.
  void poison() {
    for (std::int32_t rank = 0; rank < shape_.shape.n_ranks; ++rank) {
      std::byte* const heap = job(rank).heap;
      std::fill(heap + offsets_.rows, heap + offsets_.experts, std::byte{0xff});
      std::fill(heap + offsets_.results, heap + offsets_.shared, std::byte{0xff});
    }
  }
  void run_experts() {
    for (std::int32_t rank = 0; rank < shape_.shape.n_ranks; ++rank) {
      const std::vector<moe::RowSource> rows = moe::expected_rows(shape_.shape, routing_, rank);
      auto* out = at<std::uint16_t>(job(rank), offsets_.outputs);
      auto* back = at<float>(job(rank), offsets_.output_weights);
      for (const moe::RowSource& row : rows) {
        const auto weights = moe::expected_weights(key(row), shape_.shape.top_k);
        for (std::size_t k = 0; k < weights.size(); ++k) {
          const std::int32_t expert = choices(row)[k];
          *back++ = shape_.shape.local_expert(expert, rank) == moe::no_expert
                        ? 0
                        : moe::weight_back(weights[k], expert);
        }
        const float factor = moe::rank_factor(shape_.shape, choices(row), rank);
        for (const std::uint16_t value : read(row))
          *out++ = moe::transformed(value, factor);
      }
    }
  }

  moe::InternodePlan plan_of(std::int32_t rank) { return plan(job(rank)); }
  /// Rows of each source and destination, of the first `count` tokens of each rank.
  std::vector<std::int32_t> counts_of(std::int32_t count) const {
    moe::Routing routing = routing_;
    for (moe::RankRouting& rank : routing)
      rank.experts.resize(static_cast<std::size_t>(std::min(count, rank.tokens())) *
                          static_cast<std::size_t>(rank.top_k));
    return moe::row_counts(shape_.shape, routing);
  }
  std::int32_t token_count(std::int32_t rank) const { return tokens(rank); }
  moe::InternodeMemory memory_of(std::int32_t rank) { return memory(job(rank)); }
  /// Whether a row of `source` lies with `rank`.
  bool has_row_of(std::int32_t source, std::int32_t rank) {
    const auto row_bytes = static_cast<std::size_t>(shape_.record().bytes());
    for (std::int32_t row = 0; row < shape_.shape.max_rows(); ++row)
      if (reinterpret_cast<const std::int32_t*>(job(rank).heap + offsets_.records +
                                                static_cast<std::size_t>(row) *
                                                    row_bytes)[shape_.record().source()] == source)
        return true;
    return false;
  }

  /// "" or what is wrong with what rank has received.
  std::string wrong_rows(std::int32_t rank) {
    const moe::Shape& shape = shape_.shape;
    const std::vector<moe::RowSource> rows = moe::expected_rows(shape, routing_, rank);
    const moe::MetadataLayout layout = shape_.record();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::byte* const values =
          job(rank).heap + offsets_.rows + i * static_cast<std::size_t>(shape_.value_bytes());
      const auto* const record = reinterpret_cast<const std::uint32_t*>(
          job(rank).heap + offsets_.records + i * static_cast<std::size_t>(layout.bytes()));
      const std::string where =
          "rank " + std::to_string(rank) + ", row " + std::to_string(i) + ": ";
      if (record[layout.source()] != static_cast<std::uint32_t>(rows[i].rank) ||
          record[layout.token()] != static_cast<std::uint32_t>(rows[i].token))
        return where + "another token";
      if (!same_values(values, record, rows[i]))
        return where + "other values";
      const std::vector<float> weights = moe::expected_weights(key(rows[i]), shape.top_k);
      for (std::int32_t k = 0; k < shape.top_k; ++k) {
        const std::int32_t local = shape.local_expert(choices(rows[i])[k], rank);
        if (record[layout.experts() + k] != static_cast<std::uint32_t>(local) ||
            record[layout.weights() + k] !=
                (local == moe::no_expert ? 0 : moe::bits_of(weights[static_cast<std::size_t>(k)])))
          return where + "other choices";
      }
    }
    const std::byte* const behind = job(rank).heap + offsets_.rows +
                                    rows.size() * static_cast<std::size_t>(shape_.value_bytes());
    if (std::any_of(behind, static_cast<const std::byte*>(job(rank).heap + offsets_.records),
                    [](std::byte byte) { return byte != std::byte{0xff}; }))
      return "rank " + std::to_string(rank) + ": something was written behind the rows";
    return wrong_counts(rank);
  }
  std::string wrong_results(std::int32_t rank, bool with_bias) {
    const auto* result = at<std::uint16_t>(job(rank), offsets_.results);
    for (std::int32_t token = 0; token < tokens(rank); ++token) {
      const moe::RowSource row{rank, token};
      const std::vector<std::uint16_t> expected = moe::expected_combined(
          shape_.shape, choices(row), key(row), moe::Combine::rows, read(row),
          with_bias ? bias_of(row) : std::vector<std::uint16_t>{}, shape_.node_ranks);
      if (!std::equal(expected.begin(), expected.end(), result))
        return "rank " + std::to_string(rank) + ", token " + std::to_string(token) +
               ": another result";
      result += expected.size();
    }
    return shape_.combined_weights ? wrong_weights(rank) : "";
  }

private:
  std::string wrong_weights(std::int32_t rank) {
    const auto* weight = at<float>(job(rank), offsets_.combined_weights);
    for (std::int32_t token = 0; token < tokens(rank); ++token) {
      const moe::RowSource row{rank, token};
      for (const float expected :
           moe::expected_combined_weights(shape_.shape, choices(row), key(row)))
        if (moe::bits_of(*weight++) != moe::bits_of(expected))
          return "rank " + std::to_string(rank) + ", token " + std::to_string(token) +
                 ": another weight";
    }
    return "";
  }

  struct Offsets : HostParts {
    explicit Offsets(const moe::InternodeShape& shape) {
      const moe::Shape& all = shape.shape;
      const std::int64_t places = shape.other_nodes(), n = all.n_ranks, tokens = all.max_tokens;
      flags = add(sizeof(moe::CallFlags));
      rails = add(sizeof(moe::RailFlags));
      counts_out = add(size(8 * n * shape.message_words()));
      counts_in = add(size(8 * n * shape.message_words()));
      row_signals = add(size(8 * places * tokens)); // for chunks of any number of rows
      sum_signals = add(size(8 * places * tokens));
      rows = add(size(static_cast<std::int64_t>(all.max_rows()) * shape.value_bytes()));
      records = add(size(static_cast<std::int64_t>(all.max_rows()) * shape.record().bytes()));
      rows_out = add(size(places * tokens * shape.crossing_bytes()));
      rows_in = add(size(places * tokens * shape.crossing_bytes()));
      sums_out = add(size(places * tokens * shape.sum_bytes()));
      sums_in = add(size(places * tokens * shape.sum_bytes()));
      experts = add(size(4 * tokens * all.top_k));
      weights = add(size(4 * tokens * all.top_k));
      values = add(size(tokens * shape.value_bytes()));
      scales = add(size(4 * tokens * all.scales_per_row()));
      bias = add(size(tokens * shape.output_bytes()));
      outputs = add(size(static_cast<std::int64_t>(all.max_rows()) * shape.output_bytes()));
      output_weights = add(size(static_cast<std::int64_t>(all.max_rows()) * all.top_k * 4));
      slots = add(size(4 * tokens * n));
      counts = add(size(4 * n * n));
      bases = add(size(4 * n * n));
      expert_counts = add(size(4 * all.local_experts()));
      crossing_slots = add(size(4 * tokens * shape.n_nodes()));
      crossing_tokens = add(size(4 * tokens * shape.n_nodes()));
      crossing_counts = add(size(4 * n * shape.n_nodes()));
      results = add(size(tokens * shape.output_bytes()));
      combined_weights = add(size(4 * tokens * all.top_k));
      shared = add(size(4 * moe::internode_notify_words(shape, counting.threads)));
    }
    std::size_t flags, rails, counts_out, counts_in, row_signals, sum_signals, rows, records,
        rows_out, rows_in, sums_out, sums_in, experts, weights, values, scales, bias, outputs,
        slots, counts, bases, expert_counts, crossing_slots, crossing_tokens, crossing_counts,
        results, output_weights, combined_weights, shared;
  };

  moe::InternodeShape in_chunks(int op) const {
    moe::InternodeShape shape = shape_;
    shape.chunk_rows = chunk_rows_[op];
    return shape;
  }
  moe::InternodeMemory memory(const DeviceJob& job) const {
    moe::InternodeMemory memory{};
    memory.node = {at<moe::CallFlags>(job, offsets_.flags), nullptr, job.heap + offsets_.rows,
                   job.heap + offsets_.records, job.heap + offsets_.outputs};
    memory.rails = at<moe::RailFlags>(job, offsets_.rails);
    memory.counts_out = at<std::int32_t>(job, offsets_.counts_out);
    memory.counts_in = at<std::int32_t>(job, offsets_.counts_in);
    memory.row_signals = at<std::uint64_t>(job, offsets_.row_signals);
    memory.sum_signals = at<std::uint64_t>(job, offsets_.sum_signals);
    memory.rows_out = job.heap + offsets_.rows_out;
    memory.rows_in = job.heap + offsets_.rows_in;
    memory.sums_out = job.heap + offsets_.sums_out;
    memory.sums_in = job.heap + offsets_.sums_in;
    return memory;
  }
  moe::InternodePlan plan(const DeviceJob& job) const {
    return {at<std::int32_t>(job, offsets_.slots),
            at<std::int32_t>(job, offsets_.counts),
            at<std::int32_t>(job, offsets_.bases),
            at<std::int32_t>(job, offsets_.expert_counts),
            at<std::int32_t>(job, offsets_.crossing_slots),
            at<std::int32_t>(job, offsets_.crossing_tokens),
            at<std::int32_t>(job, offsets_.crossing_counts)};
  }
  std::vector<std::uint16_t> bias_of(const moe::RowSource& row) const {
    return moe::expected_values(shape_.shape, key(row) ^ 1);
  }
  std::string wrong_counts(std::int32_t rank) {
    const auto expected = moe::expected_expert_counts(shape_.shape, routing_, rank);
    const auto counts = moe::row_counts(shape_.shape, routing_);
    if (!std::equal(expected.begin(), expected.end(),
                    at<std::int32_t>(job(rank), offsets_.expert_counts)) ||
        !std::equal(counts.begin(), counts.end(), at<std::int32_t>(job(rank), offsets_.counts)))
      return "rank " + std::to_string(rank) + ": other counts";
    return "";
  }
  void fill(std::int32_t rank) {
    fill_tokens(rank, {offsets_.experts, offsets_.weights, offsets_.values, offsets_.scales});
    for (std::int32_t token = 0; token < tokens(rank); ++token) {
      const auto bias = bias_of({rank, token});
      std::copy(bias.begin(), bias.end(),
                at<std::uint16_t>(job(rank), offsets_.bias) +
                    static_cast<std::size_t>(token) * bias.size());
    }
  }

  moe::InternodeShape shape_;
  std::int32_t chunk_rows_[2] = {shape_.chunk_rows, shape_.chunk_rows}; ///< dispatch, combine
  Offsets offsets_;
};

} // namespace shmemctl::test
