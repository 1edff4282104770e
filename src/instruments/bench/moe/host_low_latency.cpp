// Low latency on the host: every source has its own slots on every rank, in two buffers that
// alternate with the parity of the call, and one flag that contains the number of rows. No rank
// waits before it sends.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "src/instruments/bench/moe/host_backend.h"

namespace shmemctl::moe {

namespace {

struct Packing {
  std::vector<std::int32_t> counts; ///< by local expert: number of its rows
  /// By local expert: its first row; then the end of all rows.
  std::vector<std::int32_t> offsets;
  /// [received row][choice]; -1: the expert is on another rank, or the choice is masked.
  std::vector<std::int32_t> output_rows;
};
/// @param choices for each received row: its shape.top_k experts, on any rank
Packing packing_of(const Shape& shape, const std::vector<const std::int32_t*>& choices,
                   std::int32_t rank) {
  Packing packing;
  packing.counts.resize(static_cast<std::size_t>(shape.local_experts()));
  for (const std::int32_t* const of_row : choices)
    for (std::int32_t k = 0; k < shape.top_k; ++k) {
      const std::int32_t local = shape.local_expert(of_row[k], rank);
      // The number of this row among its expert's rows; the expert's first row is added after all
      // are counted.
      packing.output_rows.push_back(
          local == no_expert ? -1 : packing.counts[static_cast<std::size_t>(local)]++);
    }
  packing.offsets.push_back(0);
  for (const std::int32_t count : packing.counts)
    packing.offsets.push_back(packing.offsets.back() +
                              aligned_count(count, shape.expert_alignment));
  std::size_t next = 0;
  for (const std::int32_t* const of_row : choices)
    for (std::int32_t k = 0; k < shape.top_k; ++k, ++next)
      if (const std::int32_t local = shape.local_expert(of_row[k], rank); local != no_expert)
        packing.output_rows[next] += packing.offsets[static_cast<std::size_t>(local)];
  return packing;
}

inline void add_weighted_row(const std::uint16_t* row, float weight, std::vector<float>& totals) {
  for (std::size_t channel = 0; channel < totals.size(); ++channel)
    totals[channel] = multiply_add(weight, float_of_bf16(row[channel]), totals[channel]);
}

#if defined(__x86_64__)
/// add_weighted_row(), compiled for processors with FMA instructions. Otherwise the compiler would
/// call the C library for each number.
[[gnu::target("fma"), gnu::flatten]] void
add_weighted_by_fma(const std::uint16_t* row, float weight, std::vector<float>& totals) {
  add_weighted_row(row, weight, totals);
}
#endif

/// totals += weight * row, each number rounded once.
/// @param row has as many BF16 values as there are totals
void add_weighted(const std::uint16_t* row, float weight, std::vector<float>& totals) {
#if defined(__x86_64__)
  static const bool has_fma = __builtin_cpu_supports("fma") != 0;
  if (has_fma)
    return add_weighted_by_fma(row, weight, totals);
#endif
  add_weighted_row(row, weight, totals);
}

class LowLatency final : public HostBackend {
public:
  LowLatency(Rma& rma, std::byte* memory, const Setup& setup, Mutation mutation)
      : HostBackend(rma, memory, setup, std::move(mutation)), n_(setup.shape.n_ranks),
        come_(as_size(n_)), expert_counts_(as_size(setup.shape.local_experts())) {
    for (std::int32_t i = 0; i < n_; ++i) // itself first, then the others in turn
      everybody_.push_back({(me_ + i) % n_, (me_ + i) % n_});
  }

  void poison() override {
    poison_common();
    std::memset(memory_ + layout_.receive, static_cast<int>(poison_byte),
                2 * as_size(setup_.shape.max_rows()) * row_fields_.stride_bytes());
    std::memset(memory_ + layout_.back, static_cast<int>(poison_byte),
                2 * half_back_rows() * value_row_bytes());
    std::memset(memory_ + layout_.packed, static_cast<int>(poison_byte),
                layout_.packed_rows * row_fields_.stride_bytes());
  }

  Times dispatch(bool cached) override;
  void run_experts() override;
  Times combine() override;
  bool has_phases() const override { return true; }
  double send(Direction direction) override;
  double receive(Direction direction) override;

private:
  static std::size_t as_size(std::int32_t value) { return static_cast<std::size_t>(value); }
  bool weighted() const { return setup_.combine == Combine::weighted; }
  /// The number of rows that are returned for a token: one for each choice, or for each rank.
  std::int32_t per_token() const { return weighted() ? setup_.shape.top_k : n_; }
  std::size_t half_back_rows() const {
    return as_size(per_token()) * as_size(setup_.shape.max_tokens);
  }
  std::byte* slot(std::int32_t buffer, std::int32_t source, std::int32_t index) const {
    return memory_ + layout_.receive +
           (as_size(buffer) * as_size(setup_.shape.max_rows()) +
            as_size(fixed_slot(setup_.shape, source, index))) *
               row_fields_.stride_bytes();
  }
  std::byte* output_row_in(std::int32_t buffer, std::int32_t token, std::int32_t of_token) const {
    return memory_ + layout_.back +
           (as_size(buffer) * half_back_rows() + as_size(token * per_token() + of_token)) *
               value_row_bytes();
  }
  std::byte* result_row(std::size_t index) const {
    return memory_ + layout_.results + index * value_row_bytes();
  }
  std::byte* packed_row(std::int32_t output_row) const {
    return memory_ + layout_.packed + as_size(output_row) * row_fields_.stride_bytes();
  }
  /// The flag of `source` in that half.
  std::uint64_t* word(std::size_t signals, std::int32_t buffer, std::int32_t source) const {
    return words(signals) + std::ptrdiff_t{buffer} * n_ + source;
  }

  void send_all();
  void signal_begin();
  void receive_all(Times& times);
  void send_outputs();
  void receive_outputs(Times& times);
  std::vector<std::int32_t> send_rows();
  void set_signals(std::size_t signals, std::uint64_t epoch,
                   const std::vector<std::int32_t>& counts);
  void wait_for_words(std::size_t signals, std::uint64_t epoch, const char* step, Times& times);
  void count_choices();
  void pack();
  void run_packed_experts();
  void put_outputs();
  std::optional<std::string> wrong_packed() const;
  void add_up_all();

  std::vector<std::byte*> received_rows() const override;
  std::optional<std::string> wrong_counts_or_gaps(std::size_t rows) const override;

  const std::int32_t n_;
  std::vector<std::int32_t> come_; ///< by source: number of rows in the last dispatch
  std::vector<std::int32_t> expert_counts_;
  Packing packing_; ///< the packing of the last dispatch, if rows are packed
  std::vector<Awaited> everybody_;
  std::uint64_t epoch_ = 0, back_epoch_ = 0;
};

Times LowLatency::dispatch(bool /*cached: there is no plan to use again*/) {
  Times times = no_times();
  const Clock::time_point begin = Clock::now();
  send_all();
  receive_all(times);
  times.total_us = us_since(begin);
  return times;
}

double LowLatency::send(Direction direction) {
  const Clock::time_point begin = Clock::now();
  if (direction == Direction::combine)
    send_outputs();
  else
    send_all();
  return us_since(begin);
}

double LowLatency::receive(Direction direction) {
  Times times = no_times();
  const Clock::time_point begin = Clock::now();
  if (direction == Direction::combine)
    receive_outputs(times);
  else
    receive_all(times);
  return us_since(begin);
}

void LowLatency::send_all() {
  select_direction(Direction::dispatch);
  ++epoch_;
  signal_begin();
  if (mutates(Mutation::Kind::early_signal)) {
    std::vector<std::int32_t> counts(as_size(n_));
    const std::vector<std::int32_t> all = row_counts(setup_.shape, *setup_.routing);
    std::copy_n(all.begin() + std::ptrdiff_t{me_} * n_, n_, counts.begin());
    set_signals(layout_.signals.rows, epoch_, counts);
    rma_.quiet();
    mutation_.gate();
    send_rows();
  } else {
    const std::vector<std::int32_t> counts = send_rows();
    fence_rows();
    set_signals(layout_.signals.rows, epoch_, counts);
  }
}

/// Tells all ranks that this call has begun. Not ordered with rows; only for statistics.
void LowLatency::signal_begin() {
  for (const Awaited& to : everybody_)
    if (!is_masked(to.rank))
      signal(words(layout_.signals.ready) + me_, epoch_, to.rank);
}

/// Receives the rows. For each source, measures the time until it had begun its call, and from then
/// until its last row had arrived.
void LowLatency::receive_all(Times& times) {
  const Clock::time_point sent = Clock::now();
  std::vector<bool> begun(as_size(n_));
  times.begin_wait_us.resize(as_size(n_));
  wait_for_all(
      everybody_,
      [&](std::int32_t source) {
        const std::size_t slot = as_size(source);
        const bool come =
            has_come(load(word(layout_.signals.rows, buffer_of_epoch(epoch_), source)), epoch_);
        if (!begun[slot] && (come || load(words(layout_.signals.ready) + source) >= epoch_)) {
          begun[slot] = true;
          times.begin_wait_us[slot] = us_since(sent);
        }
        return come;
      },
      "low-latency dispatch: rows", times);
  for (std::size_t source = 0; source < as_size(n_); ++source) {
    times.arrival_us = std::max(times.arrival_us, times.begin_wait_us[source]);
    times.transfer_us =
        std::max(times.transfer_us, times.wait_us[source] - times.begin_wait_us[source]);
  }
  for (std::int32_t source = 0; source < n_; ++source)
    come_[as_size(source)] =
        is_masked(source)
            ? 0
            : count_of(load(word(layout_.signals.rows, buffer_of_epoch(epoch_), source)));
  count_choices();
  if (setup_.by_expert) {
    const Clock::time_point unpacked = Clock::now();
    pack();
    times.pack_us = us_since(unpacked);
  }
  rma_.quiet();
}

/// @return for each rank: the number of rows that were sent to it
std::vector<std::int32_t> LowLatency::send_rows() {
  std::vector<std::int32_t> next(as_size(n_));
  for (std::int32_t token = 0; token < tokens(); ++token) {
    const RankMask mask = ranks_of_token(setup_.shape, mine_.choices(token));
    for (const Awaited& to : everybody_) {
      if (!goes_to(mask, to.rank) || is_masked(to.rank))
        continue;
      std::int32_t index = next[as_size(to.rank)]++;
      if (mutates(Mutation::Kind::swapped_rows) && index < 2)
        // Swaps two rows; if there is only one, it leaves a gap, which is wrong as well.
        index = 1 - index;
      put_row(slot(buffer_of_epoch(epoch_), me_, index), send_row(token), to.rank);
    }
  }
  return next;
}

void LowLatency::set_signals(std::size_t signals, std::uint64_t epoch,
                             const std::vector<std::int32_t>& counts) {
  for (const Awaited& to : everybody_)
    if (!is_masked(to.rank))
      signal(word(signals, buffer_of_epoch(epoch), me_),
             count_word(epoch, counts[as_size(to.rank)]), to.rank);
}

void LowLatency::wait_for_words(std::size_t signals, std::uint64_t epoch, const char* step,
                                Times& times) {
  wait_for_all(
      everybody_,
      [&](std::int32_t source) {
        return has_come(load(word(signals, buffer_of_epoch(epoch), source)), epoch);
      },
      step, times);
}

void LowLatency::count_choices() {
  std::fill(expert_counts_.begin(), expert_counts_.end(), 0);
  for (const std::byte* row : received_rows())
    for (std::int32_t k = 0; k < setup_.shape.top_k; ++k)
      if (const std::int32_t local = setup_.shape.local_expert(row_fields_.experts(row)[k], me_);
          local != no_expert)
        ++expert_counts_[as_size(local)];
  for (std::int32_t& chosen : expert_counts_)
    chosen = aligned_count(chosen, setup_.shape.expert_alignment);
}

void LowLatency::pack() {
  const std::vector<std::byte*> rows = received_rows();
  std::vector<const std::int32_t*> choices;
  for (const std::byte* row : rows)
    choices.push_back(row_fields_.experts(row));
  packing_ = packing_of(setup_.shape, choices, me_);
  const auto top_k = as_size(setup_.shape.top_k);
  for (std::size_t i = 0; i < packing_.output_rows.size(); ++i)
    if (packing_.output_rows[i] >= 0)
      std::memcpy(packed_row(packing_.output_rows[i]), rows[i / top_k], row_fields_.stride_bytes());
}

void LowLatency::run_packed_experts() {
  for (std::size_t expert = 0; expert < packing_.counts.size(); ++expert) {
    const float factor =
        expert_factor(setup_.shape.first_expert(me_) + static_cast<std::int32_t>(expert));
    for (std::int32_t i = 0; i < packing_.counts[expert]; ++i) {
      const std::int32_t output_row = packing_.offsets[expert] + i;
      const std::vector<std::uint16_t> read = read_row(setup_, packed_row(output_row));
      auto* const out = reinterpret_cast<std::uint16_t*>(result_row(as_size(output_row)));
      std::transform(read.begin(), read.end(), out,
                     [factor](std::uint16_t x) { return transformed(x, factor); });
    }
  }
}

void LowLatency::run_experts() {
  if (setup_.by_expert)
    return run_packed_experts();
  std::size_t index = 0;
  for (const std::byte* row : received_rows()) {
    const std::vector<std::uint16_t> read = read_row(setup_, row);
    const std::int32_t* const experts = row_fields_.experts(row);
    if (!weighted()) {
      auto* const out = reinterpret_cast<std::uint16_t*>(result_row(index++));
      std::transform(read.begin(), read.end(), out, [&](std::uint16_t x) {
        return partial_row(x, setup_.shape, experts, row_fields_.weights(row), me_);
      });
      continue;
    }
    for (std::int32_t k = 0; k < setup_.shape.top_k; ++k) {
      if (setup_.shape.local_expert(experts[k], me_) == no_expert)
        continue;
      const float factor = expert_factor(experts[k]);
      auto* const out = reinterpret_cast<std::uint16_t*>(result_row(index++));
      std::transform(read.begin(), read.end(), out,
                     [factor](std::uint16_t x) { return transformed(x, factor); });
    }
  }
}

Times LowLatency::combine() {
  Times times = no_times();
  const Clock::time_point begin = Clock::now();
  send_outputs();
  receive_outputs(times);
  times.total_us = us_since(begin);
  times.transfer_us = times.total_us;
  return times;
}

void LowLatency::send_outputs() {
  select_direction(Direction::combine);
  ++back_epoch_;
  put_outputs();
  fence_rows();
  set_signals(layout_.signals.rows_back, back_epoch_, std::vector<std::int32_t>(as_size(n_)));
}

void LowLatency::receive_outputs(Times& times) {
  const Clock::time_point sent = Clock::now();
  wait_for_words(layout_.signals.rows_back, back_epoch_, "low-latency combine: rows", times);
  times.arrival_us = us_since(sent);
  add_up_all();
  rma_.quiet();
}

void LowLatency::put_outputs() {
  const std::int32_t buffer = buffer_of_epoch(back_epoch_);
  std::size_t index = 0, choice = 0;
  for (const std::byte* row : received_rows()) {
    const RowSource home = row_fields_.source(row);
    const bool comes = is_token(home) && !is_masked(home.rank);
    if (!weighted()) {
      if (comes)
        put(output_row_in(buffer, home.token, me_), result_row(index), value_row_bytes(),
            home.rank);
      ++index;
      continue;
    }
    for (std::int32_t k = 0; k < setup_.shape.top_k; ++k, ++choice) {
      if (setup_.shape.local_expert(row_fields_.experts(row)[k], me_) == no_expert)
        continue;
      const std::size_t at = setup_.by_expert ? as_size(packing_.output_rows[choice]) : index++;
      if (comes)
        put(output_row_in(buffer, home.token, k), result_row(at), value_row_bytes(), home.rank);
    }
  }
}

void LowLatency::add_up_all() {
  const std::int32_t buffer = buffer_of_epoch(back_epoch_);
  const auto channels = as_size(setup_.shape.hidden);
  for (std::int32_t token = 0; token < tokens(); ++token) {
    const std::int32_t* const experts = active_routing()[as_size(me_)].choices(token);
    const float* const weights = row_fields_.weights(send_row(token));
    const RankMask mask = ranks_of_token(setup_.shape, experts);
    std::vector<float> totals(channels);
    for (std::int32_t i = 0; i < per_token(); ++i) {
      if (weighted() ? experts[i] < 0 : !goes_to(mask, i))
        continue;
      const auto* const row =
          reinterpret_cast<const std::uint16_t*>(output_row_in(buffer, token, i));
      if (weighted())
        add_weighted(row, weights[i], totals);
      else
        std::transform(
            totals.begin(), totals.end(), row, totals.begin(),
            [](float sum, std::uint16_t value) { return add(sum, float_of_bf16(value)); });
    }
    std::transform(totals.begin(), totals.end(), combined_row(token), bf16_of_float);
  }
}

std::vector<std::byte*> LowLatency::received_rows() const {
  std::vector<std::byte*> rows;
  for (std::int32_t source = 0; source < n_; ++source)
    for (std::int32_t index = 0; index < come_[as_size(source)]; ++index)
      rows.push_back(slot(buffer_of_epoch(epoch_), source, index));
  return rows;
}

std::optional<std::string> LowLatency::wrong_counts_or_gaps(std::size_t /*rows*/) const {
  if (expert_counts_ != expected_expert_counts(setup_.shape, active_routing(), me_))
    return "the counts of its experts are not those of the routing";
  for (std::int32_t buffer = 0; buffer < 2; ++buffer)
    for (std::int32_t source = 0; source < n_; ++source) {
      if (is_masked(source)) // a masked rank may still write its slots, but nobody reads them
        continue;
      const std::int32_t used = come_[as_size(source)];
      if (const auto at =
              first_written(slot(buffer, source, used),
                            as_size(setup_.shape.max_tokens - used) * row_fields_.stride_bytes()))
        return fmt::format("byte {} after the {} rows of rank {} was written", *at, used, source);
    }
  return setup_.by_expert ? wrong_packed() : std::nullopt;
}

std::optional<std::string> LowLatency::wrong_packed() const {
  const PackedRows expected = expected_packed(setup_.shape, active_routing(), me_);
  if (packing_.offsets != expected.offsets)
    return "the experts' packed rows do not begin where the routing says";
  for (std::size_t expert = 0; expert < expected.rows.size(); ++expert) {
    const std::vector<RowSource>& rows = expected.rows[expert];
    std::int32_t output_row = expected.offsets[expert];
    if (as_size(packing_.counts[expert]) != rows.size())
      return fmt::format("expert {} here has {} packed rows, and the routing sends {}", expert,
                         packing_.counts[expert], rows.size());
    for (const RowSource& row : rows)
      if (const auto wrong = wrong_row(setup_, row_fields_, row, packed_row(output_row++)))
        return fmt::format("packed row {} of expert {} here: {}", output_row - 1, expert, *wrong);
    const std::int32_t end = expert + 1 < expected.rows.size()
                                 ? expected.offsets[expert + 1]
                                 : static_cast<std::int32_t>(layout_.packed_rows);
    if (first_written(packed_row(output_row),
                      as_size(end - output_row) * row_fields_.stride_bytes()))
      return fmt::format("something was written after the packed rows of expert {} here", expert);
  }
  return std::nullopt;
}

} // namespace

std::unique_ptr<Backend> make_host_low_latency(Rma& rma, std::byte* memory, const Setup& setup,
                                               Mutation mutation) {
  return std::make_unique<LowLatency>(rma, memory, setup, std::move(mutation));
}

} // namespace shmemctl::moe
