#include "src/instruments/bench/moe/gpu_backend.h"

#include <fmt/format.h>

#include "kernels/moe/cast.h"
#include "src/base/deadline.h"
#include "src/instruments/bench/moe/metadata_check.h"
#include "src/instruments/bench/moe/row_fields.h"

namespace shmemctl::moe {

void GpuBackend::fill() {
  const Shape& shape = setup_.shape;
  std::vector<float> weights;
  for (std::int32_t token = 0; token < tokens(); ++token)
    for (const float weight : expected_weights(row_key(setup_.seed, me_, token), shape.top_k))
      weights.push_back(weight);
  // Experts may write anywhere in these regions, so that only the guards around them are checked.
  poison_regions({&layout_.exchange.outputs, &layout_.exchange.output_weights});
  poison_regions(plan_regions());
  // Staging regions are filled only once, because a put of an earlier call may still read them when
  // the next call begins. Therefore a row that is not staged is noticed only in the first call or
  // after a change of the routing.
  poison_regions(layout_.exchange.sent());
  gpu_.copy(at<float>(layout_.tokens.weights), weights.data(), weights.size() * sizeof(float));
  gpu_.copy(at<std::int32_t>(layout_.tokens.experts), mine_.experts.data(),
            mine_.experts.size() * sizeof(std::int32_t));
  launched(launch_fill(
      {shape, me_, tokens(), setup_.seed, at<std::uint16_t>(layout_.tokens.values)}, stream()));
  if (setup_.bias) // the values of bias_of(), as in the host backend
    launched(launch_fill(
        {shape, me_, tokens(), ~setup_.seed, at<std::uint16_t>(layout_.tokens.bias)}, stream()));
  if (setup_.format == Format::fp8 && !is_low_latency())
    launched(launch_cast({shape.hidden, tokens(), at<std::uint16_t>(layout_.tokens.values),
                          at<std::uint8_t>(layout_.tokens.casts), at<float>(layout_.tokens.scales),
                          setup_.power_scales, shared_sms(gpu_)},
                         stream()));
  wait("copy of the tokens");
}

GpuBackend::Waits GpuBackend::waits(Direction direction) {
  if (is_low_latency())
    read_masked_ranks();
  return exchange_->waits(direction);
}

Times GpuBackend::times_since(const Waits& before, Direction direction) {
  const bool dispatches = direction == Direction::dispatch;
  wait(dispatches ? "dispatch" : "combine");
  Times times;
  times.total_us = timer_.elapsed_ns() / 1000;
  const Waits after = waits(direction);
  const auto n = static_cast<std::size_t>(setup_.shape.n_ranks);
  for (std::size_t rank = 0; rank < n; ++rank) {
    const double until_begun =
        static_cast<double>(after.until_begun[rank] - before.until_begun[rank]) / 1000;
    const double until_done =
        static_cast<double>(after.until_done[rank] - before.until_done[rank]) / 1000;
    times.wait_us.push_back(until_begun + until_done);
    if (!is_low_latency() || dispatches)
      times.begin_wait_us.push_back(until_begun);
    times.arrival_us = std::max(times.arrival_us, until_begun);
    times.transfer_us = std::max(times.transfer_us, until_done);
  }
  // Here transfer_us is that of the slowest source, from when it had begun until its last row came.
  if (is_low_latency() && dispatches)
    return times;
  // A low-latency combine has only one wait, and no counts precede it.
  times.counts_us = is_low_latency() ? 0 : times.arrival_us;
  times.transfer_us = std::max(0.0, times.total_us - times.counts_us);
  return times;
}

ChainBatches chain_batches(int pairs) {
  constexpr int fewest = 8, longest = 16; // the wait for a whole batch has a single deadline
  const int batches =
      std::max(std::min(std::max(pairs, 0), fewest), (pairs + longest - 1) / longest);
  return {batches, batches > 0 ? (pairs + batches - 1) / batches : 0};
}

std::vector<double> GpuBackend::chain(int pairs, const std::function<void()>& between) {
  const auto [batches, each] = chain_batches(pairs);
  std::vector<double> periods_us;
  for (int batch = 0; batch < batches; ++batch) {
    timer_.begin(stream());
    for (int i = 0; i < each; ++i) {
      if (!is_low_latency())
        enqueue_counts();
      enqueue_dispatch();
      if (setup_.by_expert)
        enqueue_pack();
      enqueue_combine();
    }
    timer_.end(stream());
    wait("dispatch and combine in turn");
    periods_us.push_back(timer_.elapsed_ns() / 1000 / each);
    between();
  }
  if (is_low_latency())
    read_masked_ranks();
  return periods_us;
}

double GpuBackend::run_phase(Direction direction, Phases phases) {
  timer_.begin(stream());
  if (direction == Direction::combine)
    enqueue_combine(phases);
  else
    enqueue_dispatch(phases);
  if (direction == Direction::dispatch && phases == Phases::receive && setup_.by_expert)
    enqueue_pack();
  timer_.end(stream());
  wait(direction == Direction::combine ? "half of a combine" : "half of a dispatch");
  read_masked_ranks();
  return timer_.elapsed_ns() / 1000;
}

std::size_t gpu_backend_bytes(const Setup& setup, const MoePath& path) {
  return GpuLayout(setup, path).size_bytes();
}

std::unique_ptr<Backend> make_gpu_backend(PeGpu& gpu, std::byte* memory, const Setup& setup,
                                          const MoePath& path, std::int32_t rank) {
  return std::make_unique<GpuBackend>(gpu, memory, setup, path, rank);
}

void GpuBackend::run_experts_of_rows() {
  each_source([&](std::int32_t source, const Received& received) {
    launched(launch_experts({setup_.shape, record_scales(), setup_.combine, me_, received,
                             reinterpret_cast<std::uint16_t*>(outputs_of(source)), no_expert,
                             output_weights_of(source)},
                            stream()));
  });
}

void GpuBackend::run_packed_experts() {
  const PackedRows expected = expected_packed(setup_.shape, active_routing_, me_);
  for (std::size_t expert = 0; expert < expected.rows.size(); ++expert) {
    const std::int64_t first = expected.offsets[expert];
    if (!expected.rows[expert].empty())
      launched(
          launch_experts({setup_.shape, record_scales(), setup_.combine, me_,
                          packed_rows(expected.offsets[expert], expected.rows[expert].size()),
                          at<std::uint16_t>(layout_.exchange.outputs) + first * setup_.shape.hidden,
                          static_cast<std::int32_t>(expert)},
                         stream()));
  }
}

Received GpuBackend::packed_rows(std::int32_t first, std::size_t count) const {
  const std::int64_t row = first;
  return {at<std::byte>(layout_.exchange.packed_rows) +
              row * setup_.shape.value_bytes(setup_.format),
          at<std::byte>(layout_.exchange.packed_records) + row * record_.bytes(),
          static_cast<std::int32_t>(count)};
}

std::optional<std::string> GpuBackend::wrong_packed() {
  if (!setup_.by_expert)
    return std::nullopt;
  const PackedRows expected = expected_packed(setup_.shape, active_routing_, me_);
  if (read<std::int32_t>(layout_.plan.packed_offsets, expected.offsets.size()) != expected.offsets)
    return "the experts' packed rows do not begin where the routing says";
  const auto counts = read<std::int32_t>(layout_.plan.packed_counts, expected.rows.size());
  clear_mismatch();
  for (std::size_t expert = 0; expert < expected.rows.size(); ++expert) {
    const std::vector<RowSource>& rows = expected.rows[expert];
    if (static_cast<std::size_t>(counts[expert]) != rows.size())
      return fmt::format("expert {} here has {} packed rows, and the routing sends {}", expert,
                         counts[expert], rows.size());
    if (rows.empty())
      continue;
    const Received received = packed_rows(expected.offsets[expert], rows.size());
    if (const auto wrong = wrong_records(rows.data(), received))
      return fmt::format("packed for expert {} here, {}", expert, *wrong);
    launched(launch_check_rows(
        {setup_.shape, record_scales(), setup_.seed, received, at<Mismatch>(layout_.tokens.wrong)},
        stream()));
  }
  if (const Mismatch wrong = read_mismatch(); wrong.rows != 0)
    return fmt::format("{} packed rows are wrong; of one, row {} of its expert, word {}: expected "
                       "{:#x}, found {:#x}",
                       wrong.rows, wrong.row_and_word >> 32,
                       static_cast<std::int32_t>(wrong.row_and_word) - 1, wrong.expected,
                       wrong.found);
  return std::nullopt;
}

void GpuBackend::check_between_experts() {
  const PackedRows expected = expected_packed(setup_.shape, active_routing_, me_);
  for (std::size_t expert = 0; expert < expected.rows.size(); ++expert) {
    const bool last = expert + 1 == expected.rows.size();
    const Received used = packed_rows(expected.offsets[expert], expected.rows[expert].size());
    const Received next = packed_rows(expected.offsets[expert + 1], 0);
    check_untouched(used.rows + std::int64_t{used.count} * setup_.shape.value_bytes(setup_.format),
                    last ? end_of(layout_.exchange.packed_rows) : next.rows);
    check_untouched(used.records + std::int64_t{used.count} * record_.bytes(),
                    last ? end_of(layout_.exchange.packed_records) : next.records);
  }
}

void GpuBackend::read_masked_ranks() {
  const std::vector<std::int32_t> masked = exchange_->masked();
  if (masked == masked_)
    return;
  if (setup_.rank_timeout_us <= 0)
    throw Error(ExitCode::deadline, "low-latency call",
                fmt::format("receive from PE {}", masked.front()),
                fmt::format("PE {} has masked it after a timeout", me_),
                fmt::format("check the output of PE {}, or {}", masked.front(), raise_timeout()));
  masked_ = masked;
  active_routing_ = without_ranks(setup_.shape, *setup_.routing, me_, masked);
  row_counts_ = row_counts(setup_.shape, active_routing_);
}

std::optional<std::string> GpuBackend::wrong_counts() {
  const auto n = static_cast<std::size_t>(setup_.shape.n_ranks);
  const std::vector<std::int32_t>& expected = row_counts_;
  if (is_low_latency()) {
    const auto counts = read<std::int32_t>(layout_.plan.counts, n);
    for (std::size_t source = 0; source < n; ++source)
      if (const std::int32_t sent = is_masked(static_cast<std::int32_t>(source))
                                        ? -1
                                        : expected[source * n + static_cast<std::size_t>(me_)];
          counts[source] != sent)
        return fmt::format("{} rows are counted from rank {}, and the routing sends {}",
                           counts[source], source, sent);
    return std::nullopt;
  }
  if (read<std::int32_t>(layout_.plan.counts, n * n) != expected)
    return "the counts of rows are not the routing's";
  const auto experts = expected_expert_counts(setup_.shape, *setup_.routing, me_);
  if (read<std::int32_t>(layout_.plan.expert_counts, experts.size()) != experts)
    return "the counts of the experts' tokens are not the routing's";
  return std::nullopt;
}

std::vector<const GpuRegion*> GpuBackend::written_regions() const {
  std::vector<const GpuRegion*> parts = layout_.exchange.received();
  parts.insert(parts.end(), {&layout_.tokens.results, &layout_.tokens.combined_weights});
  return parts;
}

std::vector<const GpuRegion*> GpuBackend::plan_regions() const {
  std::vector<const GpuRegion*> parts = layout_.plan.all();
  if (setup_.by_expert)
    parts.push_back(&layout_.exchange.output_rows);
  return parts;
}

std::vector<const GpuRegion*> GpuBackend::guarded_regions() const {
  std::vector<const GpuRegion*> parts = written_regions();
  for (const std::vector<const GpuRegion*>& more : {plan_regions(), layout_.exchange.sent()})
    parts.insert(parts.end(), more.begin(), more.end());
  // Experts write these regions, so that only the guards around them are checked.
  parts.insert(parts.end(), {&layout_.exchange.outputs, &layout_.exchange.output_weights});
  return parts;
}

std::optional<std::string> GpuBackend::wrong_rows() {
  clear_mismatch();
  each_source([&](std::int32_t, const Received& received) {
    launched(launch_check_rows(
        {setup_.shape, record_scales(), setup_.seed, received, at<Mismatch>(layout_.tokens.wrong)},
        stream()));
  });
  if (const Mismatch wrong = read_mismatch(); wrong.rows != 0)
    return fmt::format("{} rows are wrong; of one, row {} of its source, word {}: expected {:#x}, "
                       "found {:#x}",
                       wrong.rows, wrong.row_and_word >> 32,
                       static_cast<std::int32_t>(wrong.row_and_word) - 1, wrong.expected,
                       wrong.found);
  const std::vector<RowSource> rows = expected_rows(setup_.shape, active_routing_, me_);
  const RowSource* next = rows.data();
  std::optional<std::string> wrong;
  each_source([&](std::int32_t, const Received& received) {
    if (!wrong)
      wrong = wrong_records(next, received);
    next += received.count;
  });
  return wrong;
}

std::optional<std::string> GpuBackend::wrong_records(const RowSource* rows,
                                                     const Received& received) {
  const auto words = static_cast<std::size_t>(record_.words());
  const auto count = static_cast<std::size_t>(received.count);
  std::vector<std::uint32_t> records(count * words);
  gpu_.copy(records.data(), received.records, records.size() * sizeof(std::uint32_t));
  for (std::size_t i = 0; i < count; ++i)
    if (!is_record_of(setup_.shape, record_, *setup_.routing, setup_.seed, me_, rows[i],
                      records.data() + i * words))
      return fmt::format("row {}: source, choices or weights are not those of token {} of rank {}",
                         i, rows[i].token, rows[i].rank);
  return std::nullopt;
}

/// High throughput: checks the memory after the received rows, which have no gaps between them, and
/// the places of own rows, which stay empty with in_place.
void GpuBackend::check_after_rows() {
  const std::int64_t rows = rows_of(row_counts_.data(), setup_.shape.n_ranks, me_);
  check_untouched(memory_ + layout_.exchange.rows.offset +
                      rows * setup_.shape.value_bytes(setup_.format),
                  end_of(layout_.exchange.rows));
  check_untouched(memory_ + layout_.exchange.records.offset + rows * record_.bytes(),
                  end_of(layout_.exchange.records));
  each_source([&](std::int32_t, const Received& received) {
    if (received.by_token != nullptr) // in_place: these rows stay in the tokens' memory
      check_untouched(received.rows, received.rows + std::int64_t{received.count} *
                                                         setup_.shape.value_bytes(setup_.format));
  });
}

/// Low latency: checks the memory after the rows of each source, in both halves. (All calls since
/// the memory was filled had the same routing, so both halves have the same gaps.) Slots of masked
/// ranks are not checked: such a rank may still write them, and nobody reads them.
void GpuBackend::check_between_slots() {
  const std::int64_t value_bytes = setup_.shape.value_bytes(setup_.format);
  for (std::int32_t buffer = 0; buffer < 2; ++buffer)
    for (std::int32_t source = 0; source < setup_.shape.n_ranks; ++source) {
      if (is_masked(source))
        continue;
      const std::int64_t slots = std::int64_t{buffer} * setup_.shape.max_rows();
      const std::int64_t begin = slots + fixed_slot(setup_.shape, source, rows_from(source));
      const std::int64_t end = slots + fixed_slot(setup_.shape, source + 1, 0);
      const std::byte* const rows = memory_ + layout_.exchange.rows.offset;
      const std::byte* const records = memory_ + layout_.exchange.records.offset;
      check_untouched(rows + begin * value_bytes, rows + end * value_bytes);
      check_untouched(records + begin * record_.bytes(), records + end * record_.bytes());
    }
}

std::optional<std::string> GpuBackend::wrong_untouched() {
  clear_mismatch();
  for (const GpuRegion* part : guarded_regions()) {
    const std::byte* const begin = memory_ + part->offset;
    check_untouched(begin - gpu_guard_bytes, begin);
    check_untouched(end_of(*part), end_of(*part) + gpu_guard_bytes);
  }
  if (is_low_latency())
    check_between_slots();
  else
    check_after_rows();
  if (setup_.by_expert)
    check_between_experts();
  if (read_mismatch().rows != 0)
    return "something was written outside the rows";
  return std::nullopt;
}

std::optional<std::string> GpuBackend::verify_dispatch() {
  for (const auto look : {&GpuBackend::wrong_counts, &GpuBackend::wrong_rows,
                          &GpuBackend::wrong_packed, &GpuBackend::wrong_untouched})
    if (const auto wrong = (this->*look)())
      return fmt::format("rank {}: {}", me_, *wrong);
  return std::nullopt;
}

std::optional<std::string> GpuBackend::verify_combine() {
  clear_mismatch();
  // Only for the verification kernel; the combine itself leaves out what masked ranks would
  // contribute.
  const auto put_choices = [this](const RankRouting& routing) {
    if (!masked_.empty())
      gpu_.copy(at<std::int32_t>(layout_.tokens.experts), routing.experts.data(),
                routing.experts.size() * sizeof(std::int32_t));
  };
  put_choices(active_routing_[static_cast<std::size_t>(me_)]);
  launched(launch_check_combined({setup_.shape, record_scales(), setup_.combine, me_, tokens(),
                                  setup_.seed, at<std::int32_t>(layout_.tokens.experts),
                                  at<float>(layout_.tokens.weights), bias(),
                                  at<std::uint16_t>(layout_.tokens.results),
                                  at<Mismatch>(layout_.tokens.wrong), setup_.model_node_ranks()},
                                 stream()));
  const Mismatch wrong = read_mismatch();
  put_choices(mine_);
  if (wrong.rows != 0)
    return fmt::format("rank {}: {} tokens are wrong; of one, token {}, channel {}: expected "
                       "{:#06x}, found {:#06x}",
                       me_, wrong.rows, wrong.row_and_word >> 32,
                       static_cast<std::int32_t>(wrong.row_and_word) - 1, wrong.expected,
                       wrong.found);
  for (const auto look : {&GpuBackend::wrong_combined_weights, &GpuBackend::wrong_untouched})
    if (const auto wrong_there = (this->*look)())
      return fmt::format("rank {}: {}", me_, *wrong_there);
  return std::nullopt;
}

std::optional<std::string> GpuBackend::wrong_combined_weights() {
  const auto top_k = static_cast<std::size_t>(setup_.shape.top_k);
  const auto count = static_cast<std::size_t>(setup_.combined_weights ? tokens() : 0);
  const auto weights = read<float>(layout_.tokens.combined_weights, count * top_k);
  for (std::size_t token = 0; token < count; ++token)
    if (auto wrong = wrong_weights(setup_, me_, static_cast<std::int32_t>(token),
                                   weights.data() + token * top_k))
      return wrong;
  return std::nullopt;
}

} // namespace shmemctl::moe
