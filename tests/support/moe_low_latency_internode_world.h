// The world of the tests of low latency between ranks that reach each other by a network: ranks on
// threads of the host, with the kernels' own code, a network that is a copy, and the oracle.
#pragma once

#include <algorithm>
#include <deque>
#include <mutex>
#include <numeric>
#include <utility>

#include "kernels/moe/low_latency_internode_combine.cuh"
#include "kernels/moe/low_latency_internode_dispatch.cuh"
#include "tests/support/moe_host_world.h"

namespace shmemctl::test {

inline constexpr std::uint32_t low_latency_internode_seed = 20261124;

/// What a LowLatencyInternodeWorld sends, and gives back.
struct Setting {
  moe::Scales scales;
  bool weighted;
  bool packed = false; ///< outputs lie by expert
};

/// Ranks on nodes, each with its tokens and all that dispatch and combine need.
class LowLatencyInternodeWorld : public MoeHostWorld {
public:
  static constexpr HostShape grid{3, 2}; ///< grid of a dispatch: two blocks send

  LowLatencyInternodeWorld(const moe::Shape& shape, Setting setting, moe::Routing routing,
                           const std::vector<int>& nodes, double wait_s = 100)
      : MoeHostWorld(shape, setting.scales, low_latency_internode_seed, std::move(routing),
                     Offsets(shape, setting).size_bytes, wait_s),
        setting_(setting), offsets_(shape, setting) {
    kernels_.put_on_nodes(nodes);
    for (std::int32_t rank = 0; rank < shape.n_ranks; ++rank)
      fill_tokens(rank, {offsets_.experts, offsets_.weights, offsets_.values, offsets_.scales});
  }

  void dispatch(const DeviceJob& job, moe::Phases phases = moe::Phases::both) const {
    const moe::LowLatencyInternodeDispatch all{sent_,
                                               setting_.scales,
                                               memory(job),
                                               tokens(job.pe),
                                               at<std::byte>(job, offsets_.values),
                                               at<float>(job, offsets_.scales),
                                               at<std::int32_t>(job, offsets_.experts),
                                               at<float>(job, offsets_.weights),
                                               at<std::int32_t>(job, offsets_.slots),
                                               at<std::int32_t>(job, offsets_.counts),
                                               phases,
                                               0,
                                               job.timeout_ns};
    const auto blocks = static_cast<std::int32_t>(device::gridDim.x);
    const std::int32_t senders = phases == moe::Phases::receive ? 0
                                 : phases == moe::Phases::send  ? blocks
                                                                : blocks - 1;
    moe::run_low_latency_internode_dispatch(job, all, senders,
                                            at<std::int32_t>(job, offsets_.shared) +
                                                device::blockIdx.x * shared_words());
  }
  void combine(const DeviceJob& job, moe::Phases phases = moe::Phases::both) const {
    const moe::LowLatencyInternodeCombine all{
        sent_,
        setting_.scales,
        memory(job),
        setting_.weighted,
        tokens(job.pe),
        at<std::int32_t>(job, offsets_.experts),
        at<float>(job, offsets_.weights),
        at<std::int32_t>(job, offsets_.slots),
        at<std::int32_t>(job, offsets_.counts),
        at<std::uint16_t>(job, offsets_.results),
        phases,
        0,
        job.timeout_ns,
        setting_.packed ? at<std::int32_t>(job, offsets_.output_rows) : nullptr,
        setting_.packed ? at<std::int32_t>(job, offsets_.output_rows_by_slot) : nullptr};
    moe::run_low_latency_internode_combine(
        job, all, at<moe::TokenRows>(job, offsets_.lists) + device::blockIdx.x,
        at<moe::LongestWaits>(job, offsets_.waits)[device::blockIdx.x]);
  }
  void poison() {
    for (std::int32_t rank = 0; rank < sent_.n_ranks; ++rank)
      std::fill(job(rank).heap + offsets_.rows, job(rank).heap + offsets_.experts, std::byte{0xff});
  }
  /// The experts' work on what came in dispatch `number`; "" or what was wrong with it.
  /// @param masked whose rows it does not take
  std::string poll_and_work(std::int32_t rank, int number,
                            const std::vector<std::int32_t>& masked = {}) {
    std::vector<moe::RowSource> rows = moe::expected_rows(sent_, routing_, rank);
    std::erase_if(rows, [&](const moe::RowSource& row) { return is_in(masked, row.rank); });
    std::vector<std::int32_t> seen(static_cast<std::size_t>(sent_.n_ranks));
    pack(rank, rows);
    for (const moe::RowSource& row : rows) {
      const std::int32_t slot = seen[static_cast<std::size_t>(row.rank)]++;
      const std::int64_t output_row = moe::buffer_of_dispatch(static_cast<std::uint64_t>(number)) *
                                          std::int64_t{sent_.max_rows()} +
                                      moe::fixed_slot(sent_, row.rank, slot);
      const std::string where = "rank " + std::to_string(rank) + ", token " +
                                std::to_string(row.token) + " of " + std::to_string(row.rank);
      const auto* const record = reinterpret_cast<const std::uint32_t*>(
          job(rank).heap + offsets_.records + output_row * layout_.bytes());
      if (record[layout_.source()] != static_cast<std::uint32_t>(row.rank) ||
          record[layout_.token()] != static_cast<std::uint32_t>(row.token))
        return where + ": another record";
      if (!same_values(job(rank).heap + offsets_.rows + output_row * value_bytes(), record, row))
        return where + ": other values";
      work(rank, row, moe::fixed_slot(sent_, row.rank, slot));
    }
    for (const std::int32_t other : masked)
      seen[static_cast<std::size_t>(other)] = -1;
    const auto* const counts = at<std::int32_t>(job(rank), offsets_.counts);
    return std::equal(seen.begin(), seen.end(), counts) ? "" : "other counts";
  }
  /// @param masked the rank that adds nothing
  std::string wrong_results(std::int32_t rank, const std::vector<std::int32_t>& masked = {}) {
    const auto* result = at<std::uint16_t>(job(rank), offsets_.results);
    for (std::int32_t token = 0; token < tokens(rank); ++token) {
      const moe::RowSource row{rank, token};
      std::vector<std::int32_t> left(choices(row), choices(row) + sent_.top_k);
      for (std::int32_t& expert : left)
        if (expert >= 0 && is_in(masked, sent_.rank_of_expert(expert)))
          expert = moe::no_expert;
      const auto expected = moe::expected_combined(
          sent_, left.data(), key(row),
          setting_.weighted ? moe::Combine::weighted : moe::Combine::partial, read(row));
      if (!std::equal(expected.begin(), expected.end(), result))
        return "rank " + std::to_string(rank) + ", token " + std::to_string(token);
      result += expected.size();
    }
    return "";
  }
  moe::LowLatencyFlags& flags(std::int32_t rank) {
    return *at<moe::LowLatencyFlags>(job(rank), offsets_.flags);
  }
  std::int32_t count_from(std::int32_t rank, std::int32_t source) {
    return at<std::int32_t>(job(rank), offsets_.counts)[source];
  }

private:
  struct Offsets : HostParts {
    Offsets(const moe::Shape& shape, Setting setting) {
      const std::int64_t all_rows = shape.max_rows(), tokens = shape.max_tokens;
      const std::int64_t record = moe::MetadataLayout(shape, setting.scales).bytes();
      const std::int64_t value = shape.value_bytes(moe::format_of(setting.scales));
      const std::int64_t back_rows = all_rows * moe::rows_of(shape, setting.weighted);
      const std::int64_t n_outputs = setting.packed ? moe::max_packed_rows(shape) : back_rows;
      flags = add(sizeof(moe::LowLatencyFlags));
      row_signals = add(size(4 * all_rows * 8));
      output_signals = add(size(back_rows * 8));
      lists = add(sizeof(moe::TokenRows) * grid.blocks);
      waits = add(sizeof(moe::LongestWaits) * grid.blocks);
      rows = add(size(2 * all_rows * value));
      records = add(size(2 * all_rows * record));
      rows_out = add(size(2 * tokens * value));
      records_out = add(size(2 * all_rows * record));
      outputs_of_experts = add(size(n_outputs * shape.hidden * 2));
      back = add(size(back_rows * shape.hidden * 2));
      results = add(size(tokens * shape.hidden * 2));
      experts = add(size(tokens * shape.top_k * 4));
      weights = add(size(tokens * shape.top_k * 4));
      values = add(size(tokens * value));
      scales = add(size(tokens * shape.scales_per_row() * 4));
      slots = add(size(tokens * shape.n_ranks * 4));
      counts = add(size(shape.n_ranks * 4));
      output_rows = add(size(tokens * shape.top_k * 4));
      output_rows_by_slot = add(size(all_rows * shape.top_k * 4));
      shared =
          add(size(4 * moe::low_latency_internode_shared_words(shape, grid.threads) * grid.blocks));
    }
    std::size_t flags, row_signals, output_signals, lists, waits, rows, records, rows_out,
        records_out, outputs_of_experts, back, results, experts, weights, values, scales, slots,
        counts, output_rows, output_rows_by_slot, shared;
  };

  static bool is_in(const std::vector<std::int32_t>& ranks, std::int32_t rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  }
  std::size_t shared_words() const {
    return static_cast<std::size_t>(moe::low_latency_internode_shared_words(sent_, grid.threads));
  }
  moe::LowLatencyInternodeMemory memory(const DeviceJob& job) const {
    return {{at<moe::LowLatencyFlags>(job, offsets_.flags), job.heap + offsets_.rows,
             job.heap + offsets_.records, job.heap + offsets_.outputs_of_experts},
            at<std::uint64_t>(job, offsets_.row_signals),
            at<std::uint64_t>(job, offsets_.output_signals),
            job.heap + offsets_.rows_out,
            job.heap + offsets_.records_out,
            job.heap + offsets_.back};
  }
  /// What the packing of `rank` does behind a dispatch: tells homes that it maps, and itself.
  void pack(std::int32_t rank, const std::vector<moe::RowSource>& rows) {
    std::vector<std::int32_t> next(static_cast<std::size_t>(sent_.local_experts())), output_rows;
    const auto each = [&](const auto& act) {
      std::vector<std::int32_t> seen(static_cast<std::size_t>(sent_.n_ranks));
      for (const moe::RowSource& row : rows) {
        const std::int32_t slot =
            moe::fixed_slot(sent_, row.rank, seen[static_cast<std::size_t>(row.rank)]++);
        for (std::int32_t k = 0; k < sent_.top_k && setting_.packed; ++k)
          if (const std::int32_t expert = sent_.local_expert(choices(row)[k], rank);
              expert != moe::no_expert)
            act(row, slot, k, next[static_cast<std::size_t>(expert)]);
      }
    };
    each([](const moe::RowSource&, std::int32_t, std::int32_t, std::int32_t& count) { ++count; });
    std::exclusive_scan(next.begin(), next.begin() + sent_.local_experts(), next.begin(), 0);
    each([&](const moe::RowSource& row, std::int32_t slot, std::int32_t k,
             std::int32_t& output_row) {
      const bool near = job(rank).heap_delta_bytes[row.rank] != DeviceJob::unreachable;
      std::int32_t* const to =
          near ? at<std::int32_t>(job(row.rank), offsets_.output_rows) + row.token * sent_.top_k
               : at<std::int32_t>(job(rank), offsets_.output_rows_by_slot) + slot * sent_.top_k;
      to[k] = output_row++;
    });
  }
  std::int64_t output_row_of(std::int32_t rank, const moe::RowSource& row, std::int32_t slot,
                             std::int32_t which) {
    if (!setting_.packed)
      return std::int64_t{slot} * moe::rows_of(sent_, setting_.weighted) + which;
    if (job(rank).heap_delta_bytes[row.rank] != DeviceJob::unreachable)
      return at<std::int32_t>(job(row.rank), offsets_.output_rows)[row.token * sent_.top_k + which];
    return at<std::int32_t>(job(rank), offsets_.output_rows_by_slot)[slot * sent_.top_k + which];
  }
  void work(std::int32_t rank, const moe::RowSource& row, std::int32_t slot) {
    const std::vector<float> weights = moe::expected_weights(key(row), sent_.top_k);
    const std::int32_t of_row = moe::rows_of(sent_, setting_.weighted);
    const std::vector<std::uint16_t> values = read(row);
    for (std::int32_t which = 0; which < of_row; ++which)
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int32_t expert = choices(row)[which];
        if (setting_.weighted && sent_.local_expert(expert, rank) == moe::no_expert)
          continue;
        auto* const out = at<std::uint16_t>(job(rank), offsets_.outputs_of_experts) +
                          output_row_of(rank, row, slot, which) * sent_.hidden;
        std::uint16_t& to = out[i];
        if (!setting_.weighted)
          to = moe::partial_row(values[i], sent_, choices(row), weights.data(), rank);
        else
          to = moe::transformed(values[i], moe::expert_factor(expert));
      }
  }
  Setting setting_;
  Offsets offsets_;
};

/// A rank whose dispatch comes late, or not at all. Its delay is skipped on the device's clock once
/// all those that wait for it do so and have sent all their rows (a sending block skips a rank that
/// the receiving one has masked): however loaded the machine is, the others have waited for that
/// long, and for nobody else.
class LateRank {
public:
  /// @param waiting the ranks that are going to wait for `late`
  /// @param block whose waits are counted
  /// @param dispatches that the ranks send first: 1 if they wait in a dispatch, 0 in a combine
  LateRank(LowLatencyInternodeWorld& world, std::int32_t late,
           const std::vector<std::int32_t>& waiting, unsigned block, std::uint64_t dispatches = 1) {
    for (const std::int32_t rank : waiting) {
      dispatches_.push_back({&world.flags(rank).sent, world.flags(rank).sent + dispatches});
      device::HostPollCount& count = counts_.emplace_back();
      count.word = &world.flags(rank).masked[late]; // each poll of a wait loads it
      count.block = block;
      count.next = std::exchange(device::host_poll_counts, &count);
    }
  }
  LateRank(const LateRank&) = delete;
  LateRank& operator=(const LateRank&) = delete;
  ~LateRank() { device::host_poll_counts = nullptr; }

  /// Called by every thread of the late rank's kernel, before it begins. Returns after a minute, if
  /// some rank does not wait for it.
  void delay(std::uint64_t delay_ns) {
    HostKernels::wait_for([&] {
      return std::all_of(counts_.begin(), counts_.end(),
                         [](const device::HostPollCount& count) {
                           return count.polls.load(std::memory_order_relaxed) >= polls_of_a_wait;
                         }) &&
             std::all_of(dispatches_.begin(), dispatches_.end(), [](const Dispatch& dispatch) {
               return device::load_relaxed(dispatch.sent) == dispatch.number;
             });
    });
    std::call_once(skipped_, [delay_ns] { device::host_skipped_ns += delay_ns; });
  }

private:
  /// Many more than there are loads outside of waits.
  static constexpr std::uint64_t polls_of_a_wait = 2000;
  struct Dispatch {
    const std::uint64_t* sent; ///< set to `number` when the rank has sent all rows
    std::uint64_t number;
  };
  std::vector<Dispatch> dispatches_;
  std::deque<device::HostPollCount> counts_; // a deque, so that its elements stay where they are
  std::once_flag skipped_;
};

inline moe::Shape shape_of(std::int32_t n_ranks, std::int32_t max_tokens) {
  moe::Shape shape;
  shape.n_ranks = n_ranks;
  shape.n_experts = n_ranks * 5;
  shape.top_k = 4;
  shape.hidden = 640; // the five scales of a row do not fill words of four
  shape.max_tokens = max_tokens;
  return shape;
}

} // namespace shmemctl::test
