// Low latency by units on threads of the host: the kernels' code of what receives, and of a
// combine, verified against the oracle. The senders of a dispatch use warps, so a stand-in sends
// here, and stores the units of a row in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <random>
#include <utility>

#include "kernels/moe/low_latency_units.cuh"
#include "tests/gpu/moe_routings.h"
#include "tests/support/moe_host_world.h"

namespace shmemctl::test {
namespace {

constexpr std::uint32_t units_seed = 20261127;

struct UnitsSetting {
  moe::Scales scales;
  bool weighted;
};
constexpr UnitsSetting units_settings[] = {{moe::Scales::none, true},
                                           {moe::Scales::none, false},
                                           {moe::Scales::float32, true},
                                           {moe::Scales::ue8m0, false}};

class UnitsWorld : public MoeHostWorld {
public:
  static constexpr HostShape grid{4, 2}; ///< two blocks send, two receive or add up

  UnitsWorld(const moe::Shape& shape, UnitsSetting setting, moe::Routing routing,
             double wait_s = 100)
      : MoeHostWorld(shape, setting.scales, units_seed, std::move(routing),
                     Parts(shape, setting).size_bytes, wait_s),
        setting_(setting), parts_(shape, setting) {
    for (std::int32_t rank = 0; rank < shape.n_ranks; ++rank)
      fill_tokens(rank, {parts_.experts, parts_.weights, parts_.values, parts_.scales});
  }

  /// What low_latency_dispatch_by_units does.
  /// @param silent a rank that neither sends nor receives
  void dispatch(const DeviceJob& job, int silent = -1) const {
    if (job.pe == silent)
      return;
    const moe::LowLatencyDispatch all = dispatch_arguments(job);
    moe::LowLatencyFlags* const flags = all.memory.flags;
    const auto block = static_cast<std::int32_t>(device::blockIdx.x);
    if (block < 2) {
      send(job, all, block, device::load_relaxed(&flags->sent) + 1);
      if (device::Block::rank() == 0)
        sent_blocks_.fetch_add(1);
      return;
    }
    const std::uint64_t epoch = device::load_relaxed(&flags->received) + 1;
    moe::UnitReceiver receiver(all, epoch);
    receiver.run(block - 2, 2);
    receiver.finish(2);
  }
  /// What low_latency_combine_by_units does.
  void combine(const DeviceJob& job, int silent = -1) const {
    if (job.pe == silent)
      return;
    const moe::LowLatencyCombine all = combine_arguments(job);
    const std::uint64_t epoch = device::load_relaxed(&all.memory.flags->combined) + 1;
    const auto block = static_cast<std::int32_t>(device::blockIdx.x);
    if (block < 2)
      moe::UnitReturner(job, all, epoch).run(block, 2);
    else if (setting_.weighted)
      moe::UnitAdder<true>(all, epoch).run(block - 2, 2);
    else
      moe::UnitAdder<false>(all, epoch).run(block - 2, 2);
  }
  /// Called by one thread of a rank that does not come: as soon as all receiving blocks of the
  /// other ranks wait for it, and these have sent all their rows, the timeout has passed. So no
  /// other rank is waited for for that long
  void let_time_pass(const std::vector<std::int32_t>& waiting, std::int32_t silent) {
    std::deque<device::HostPollCount>& counts = counts_;
    HostKernels::wait_for([&] {
      return sent_blocks_.load() >= 2 * static_cast<int>(waiting.size()) &&
             std::all_of(counts.begin(), counts.end(), [](const device::HostPollCount& count) {
               return count.polls.load(std::memory_order_relaxed) >= 1000;
             });
    });
    device::host_skipped_ns += 2 * job(silent).timeout_ns;
  }
  /// Before the kernels run.
  void count_polls(const std::vector<std::int32_t>& waiting, std::int32_t silent) {
    for (const std::int32_t rank : waiting)
      for (const unsigned block : {2U, 3U}) {
        device::HostPollCount& count = counts_.emplace_back();
        count.word = &flags(rank).masked[silent]; // each poll of a wait loads it
        count.block = block;
        count.next = std::exchange(device::host_poll_counts, &count);
      }
  }
  void stop_counting() { device::host_poll_counts = nullptr; }
  /// Called at the end of each kernel, when all its blocks have read the number of the call.
  void count_sent(std::int32_t rank) { ++flags(rank).sent; }
  void count_combined(std::int32_t rank) { ++flags(rank).combined; }
  moe::LowLatencyFlags& flags(std::int32_t rank) {
    return *at<moe::LowLatencyFlags>(job(rank), parts_.flags);
  }
  std::int32_t count_from(std::int32_t rank, std::int32_t source) {
    return at<std::int32_t>(job(rank), parts_.counts)[source];
  }
  /// Rows, records, outputs and results; not the units, in which those of older calls stay.
  void poison() {
    for (std::int32_t rank = 0; rank < sent_.n_ranks; ++rank)
      std::fill(job(rank).heap + parts_.rows, job(rank).heap + parts_.experts, std::byte{0xff});
  }
  /// The experts' work on what has come; "" or what was wrong with it.
  std::string look_and_work(std::int32_t rank, const std::vector<std::int32_t>& masked = {}) {
    const std::int64_t first =
        moe::buffer_of_dispatch(flags(rank).received) * std::int64_t{sent_.max_rows()};
    std::vector<std::int32_t> seen(static_cast<std::size_t>(sent_.n_ranks));
    for (const moe::RowSource& row : moe::expected_rows(sent_, routing_, rank)) {
      if (is_in(masked, row.rank))
        continue;
      const std::int32_t slot =
          moe::fixed_slot(sent_, row.rank, seen[static_cast<std::size_t>(row.rank)]++);
      const auto* const record = reinterpret_cast<const std::uint32_t*>(
          job(rank).heap + parts_.records + (first + slot) * layout_.bytes());
      const std::string where =
          "rank " + std::to_string(rank) + ", token " + std::to_string(row.token);
      if (record[layout_.source()] != static_cast<std::uint32_t>(row.rank) ||
          record[layout_.token()] != static_cast<std::uint32_t>(row.token))
        return where + ": another record";
      if (!same_values(job(rank).heap + parts_.rows + (first + slot) * value_bytes(), record, row))
        return where + ": other values";
      work(rank, row, slot);
    }
    for (const std::int32_t other : masked)
      seen[static_cast<std::size_t>(other)] = -1;
    return std::equal(seen.begin(), seen.end(), at<std::int32_t>(job(rank), parts_.counts))
               ? ""
               : "other counts";
  }
  std::string wrong_results(std::int32_t rank, const std::vector<std::int32_t>& masked = {}) {
    const auto* result = at<std::uint16_t>(job(rank), parts_.results);
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

private:
  struct Parts : HostParts {
    Parts(const moe::Shape& shape, UnitsSetting setting) {
      const std::int64_t all_rows = shape.max_rows(), tokens = shape.max_tokens;
      const std::int64_t value = shape.value_bytes(moe::format_of(setting.scales));
      flags = add(sizeof(moe::LowLatencyFlags));
      units = add(size(moe::UnitLayout(shape, setting.scales).all_bytes(shape)));
      returned = add(size(moe::ReturnLayout(shape, setting.weighted).all_bytes(shape)));
      rows = add(size(2 * all_rows * value));
      records = add(size(2 * all_rows * moe::MetadataLayout(shape, setting.scales).bytes()));
      outputs = add(size(all_rows * (setting.weighted ? shape.top_k : 1) * shape.hidden * 2));
      results = add(size(tokens * shape.hidden * 2));
      experts = add(size(tokens * shape.top_k * 4));
      weights = add(size(tokens * shape.top_k * 4));
      values = add(size(tokens * value));
      scales = add(size(tokens * shape.scales_per_row() * 4));
      slots = add(size(tokens * shape.n_ranks * 4));
      counts = add(size(shape.n_ranks * 4));
    }
    std::size_t flags, units, returned, rows, records, outputs, results, experts, weights, values,
        scales, slots, counts;
  };

  static bool is_in(const std::vector<std::int32_t>& ranks, std::int32_t rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  }
  moe::LowLatencyMemory memory(const DeviceJob& job) const {
    return {at<moe::LowLatencyFlags>(job, parts_.flags),
            job.heap + parts_.rows,
            job.heap + parts_.records,
            job.heap + parts_.outputs,
            job.heap + parts_.units,
            job.heap + parts_.returned};
  }
  moe::LowLatencyDispatch dispatch_arguments(const DeviceJob& job) const {
    return {sent_,
            setting_.scales,
            memory(job),
            tokens(job.pe),
            nullptr,
            at<std::int32_t>(job, parts_.experts),
            at<float>(job, parts_.weights),
            at<std::int32_t>(job, parts_.slots),
            at<std::int32_t>(job, parts_.counts),
            moe::Phases::both,
            0,
            job.timeout_ns,
            true};
  }
  moe::LowLatencyCombine combine_arguments(const DeviceJob& job) const {
    return {sent_,
            memory(job),
            setting_.weighted,
            tokens(job.pe),
            at<std::int32_t>(job, parts_.experts),
            at<float>(job, parts_.weights),
            at<std::int32_t>(job, parts_.slots),
            at<std::uint16_t>(job, parts_.results),
            moe::Phases::both,
            {},
            0,
            job.timeout_ns,
            nullptr,
            true,
            setting_.scales,
            at<std::int32_t>(job, parts_.counts)};
  }
  /// Called by the first thread of block `block` of two: sends its tokens' rows, word by word, in
  /// any order; the count before or behind them.
  void send(const DeviceJob& job, const moe::LowLatencyDispatch& all, std::int32_t block,
            std::uint64_t epoch) const {
    if (device::Block::rank() != 0)
      return;
    const moe::UnitLayout units(sent_, setting_.scales);
    const std::int32_t buffer = moe::buffer_of_dispatch(epoch);
    std::mt19937 random(static_cast<unsigned>(epoch * 64 + static_cast<unsigned>(job.pe)));
    std::vector<std::int32_t> next(static_cast<std::size_t>(sent_.n_ranks));
    const auto publish = [&] {
      std::vector<std::int32_t> rows(static_cast<std::size_t>(sent_.n_ranks));
      each_row(job,
               [&](std::int32_t, std::int32_t rank) { ++rows[static_cast<std::size_t>(rank)]; });
      for (std::int32_t rank = 0; rank < sent_.n_ranks; ++rank)
        device::store_relaxed(
            device::pointer_to(job, &all.memory.flags->block_counts[buffer][job.pe][0], rank),
            moe::count_word(epoch, moe::packed_count(1, rows[static_cast<std::size_t>(rank)])));
    };
    if (block == 0 && epoch % 2 == 0)
      publish();
    for (std::int32_t i = 0; block == 0 && i < all.tokens * sent_.n_ranks; ++i)
      all.slots[i] = -1;
    each_row(job, [&](std::int32_t token, std::int32_t rank) {
      const std::int32_t slot = next[static_cast<std::size_t>(rank)]++;
      if (block == 0)
        all.slots[token * sent_.n_ranks + rank] = slot;
      if (token % 2 != block)
        return;
      auto* const to =
          reinterpret_cast<std::uint64_t*>(device::pointer_to(job, all.memory.units, rank) +
                                           units.offset(sent_, buffer, job.pe, slot));
      std::vector<std::pair<std::int32_t, std::uint32_t>> stores = words_of(job, token, rank);
      std::shuffle(stores.begin(), stores.end(), random);
      for (const auto& [unit, word] : stores)
        device::store_relaxed(to + unit, moe::count_word(epoch, static_cast<std::int32_t>(word)));
    });
    if (block == 0 && epoch % 2 == 1)
      publish();
  }
  template <class Act>
  void each_row(const DeviceJob& job, const Act& act) const {
    for (std::int32_t token = 0; token < tokens(job.pe); ++token) {
      const moe::RankMask ranks = moe::ranks_of_token(sent_, choices({job.pe, token}));
      for (std::int32_t rank = 0; rank < sent_.n_ranks; ++rank)
        if (moe::goes_to(ranks, rank))
          act(token, rank);
    }
  }
  /// Each unit of a row, and its 32 bits.
  std::vector<std::pair<std::int32_t, std::uint32_t>>
  words_of(const DeviceJob& job, std::int32_t token, std::int32_t rank) const {
    const moe::UnitLayout units(sent_, setting_.scales);
    const std::byte* const values = job.heap + parts_.values + std::int64_t{token} * value_bytes();
    const moe::TokenRow row{
        values,
        at<float>(job, parts_.scales) + std::int64_t{token} * sent_.scales_per_row(),
        at<std::int32_t>(job, parts_.experts) + std::int64_t{token} * sent_.top_k,
        at<std::uint32_t>(job, parts_.weights) + std::int64_t{token} * sent_.top_k,
        job.pe,
        token};
    std::vector<std::pair<std::int32_t, std::uint32_t>> words;
    for (std::int32_t group = 0; group < units.value_groups; ++group)
      for (std::int32_t i = 0; i < 4; ++i) {
        std::uint32_t word = 0;
        std::memcpy(&word, values + 16 * group + 4 * i, sizeof word);
        words.emplace_back(units.pair(group, i / 2) + i % 2, word);
      }
    for (std::int32_t word = 0; word < layout_.words(); ++word)
      words.emplace_back(units.unit_of_record(word),
                         moe::record_word(sent_, setting_.scales, layout_, row, rank, word));
    return words;
  }
  void work(std::int32_t rank, const moe::RowSource& row, std::int32_t slot) {
    const std::vector<float> weights = moe::expected_weights(key(row), sent_.top_k);
    const std::vector<std::uint16_t> values = read(row);
    const std::int32_t each = setting_.weighted ? sent_.top_k : 1;
    for (std::int32_t which = 0; which < each; ++which) {
      const std::int32_t expert = choices(row)[which];
      if (setting_.weighted && sent_.local_expert(expert, rank) == moe::no_expert)
        continue;
      auto* const out = at<std::uint16_t>(job(rank), parts_.outputs) +
                        (std::int64_t{slot} * each + which) * sent_.hidden;
      for (std::size_t i = 0; i < values.size(); ++i)
        out[i] = setting_.weighted
                     ? moe::transformed(values[i], moe::expert_factor(expert))
                     : moe::partial_row(values[i], sent_, choices(row), weights.data(), rank);
    }
  }

  UnitsSetting setting_;
  Parts parts_;
  mutable std::atomic<int> sent_blocks_{0};
  std::deque<device::HostPollCount> counts_;
};

moe::Shape units_shape(std::int32_t n_ranks, std::int32_t tokens) {
  moe::Shape shape;
  shape.n_ranks = n_ranks;
  shape.n_experts = 4 * n_ranks;
  shape.top_k = 3;
  shape.hidden = 256;
  shape.max_tokens = tokens;
  return shape;
}

/// A dispatch, the experts, a combine. @return "" or what is wrong
std::string call_by_units(UnitsWorld& world, std::int32_t n_ranks) {
  std::string wrong;
  world.kernels().run(UnitsWorld::grid, [&](const DeviceJob& job) { world.dispatch(job); });
  for (std::int32_t rank = 0; rank < n_ranks; ++rank)
    world.count_sent(rank);
  for (std::int32_t rank = 0; rank < n_ranks && wrong.empty(); ++rank)
    wrong = world.look_and_work(rank);
  if (!wrong.empty())
    return "dispatch: " + wrong;
  world.kernels().run(UnitsWorld::grid, [&](const DeviceJob& job) { world.combine(job); });
  for (std::int32_t rank = 0; rank < n_ranks; ++rank)
    world.count_combined(rank);
  for (std::int32_t rank = 0; rank < n_ranks && wrong.empty(); ++rank)
    wrong = world.wrong_results(rank);
  return wrong.empty() ? "" : "combine: " + wrong;
}

/// Several calls over the same units, which are not cleared between: those of older calls are not
/// taken for new ones.
void expect_units_right(const moe::Shape& shape, UnitsSetting setting, const moe::Routing& routing,
                        const std::string& where) {
  UnitsWorld world(shape, setting, routing);
  for (int number = 1; number <= 3; ++number) {
    world.poison();
    ASSERT_EQ(call_by_units(world, shape.n_ranks), "")
        << where << ", " << shape.n_ranks << " ranks, call " << number;
  }
}

TEST(MoeUnits, EveryBitOfEveryRow) {
  for (const auto& [n_ranks, tokens] : {std::pair{1, 6}, {2, 1}, {4, 5}})
    for (const UnitsSetting& setting : units_settings) {
      const moe::Shape shape = units_shape(n_ranks, tokens);
      expect_units_right(shape, setting, uniform_routing(shape, tokens, 2), "uniform");
    }
}

TEST(MoeUnits, EveryRouting) {
  const moe::Shape shape = units_shape(2, 6);
  for (const UnitsSetting& setting : {units_settings[0], units_settings[3]})
    for (const NamedRouting& routing : all_routings(shape))
      expect_units_right(shape, setting, routing.routing, routing.name);
}

/// More choices than are waited for together.
TEST(MoeUnits, ManyChoices) {
  moe::Shape shape = units_shape(2, 4);
  shape.n_experts = 32;
  shape.top_k = 19;
  for (const UnitsSetting& setting : {units_settings[0], units_settings[3]})
    expect_units_right(shape, setting, uniform_routing(shape, shape.max_tokens, 3), "19 choices");
}

/// The others mask it, say so in their counts, and add up what is left.
TEST(MoeUnits, ARankThatDoesNotComeIsMaskedAndTheRestGoOn) {
  constexpr std::int32_t silent = 1;
  const std::vector<std::int32_t> others{0, 2};
  const moe::Shape shape = units_shape(3, 5);
  for (const UnitsSetting& setting : units_settings) {
    UnitsWorld world(shape, setting, uniform_routing(shape, shape.max_tokens, 4));
    for (int number = 1; number <= 2; ++number) {
      world.poison();
      if (number == 1)
        world.count_polls(others, silent);
      world.kernels().run(UnitsWorld::grid, [&](const DeviceJob& job) {
        world.dispatch(job, silent);
        if (number == 1 && job.pe == silent && device::blockIdx.x == 0 && device::threadIdx.x == 0)
          world.let_time_pass(others, silent);
      });
      world.stop_counting();
      for (const std::int32_t rank : others) {
        world.count_sent(rank);
        EXPECT_EQ(world.count_from(rank, silent), -1);
        EXPECT_NE(world.flags(rank).masked[silent], 0U);
        EXPECT_EQ(world.flags(rank).masked[2 - rank], 0U) << "the other one is there";
        ASSERT_EQ(world.look_and_work(rank, {silent}), "");
      }
      EXPECT_GT(world.flags(0).wait_ns[0][silent], 100'000'000U);
      world.kernels().run(UnitsWorld::grid,
                          [&](const DeviceJob& job) { world.combine(job, silent); });
      for (const std::int32_t rank : others) {
        world.count_combined(rank);
        ASSERT_EQ(world.wrong_results(rank, {silent}), "");
      }
    }
  }
}

} // namespace
} // namespace shmemctl::test
