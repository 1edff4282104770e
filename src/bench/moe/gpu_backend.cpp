#include "src/bench/moe/gpu_backend.h"

#include <fmt/format.h>

#include "kernels/moe/cast.h"
#include "src/base/timeout_words.h"
#include "src/bench/moe/gpu_internode.h"
#include "src/bench/moe/metadata_check.h"
#include "src/bench/moe/rows.h"

namespace shmemctl::moe {

std::int32_t shared_sms(const PeGpu& gpu) {
  return std::max(1, gpu.site().multiprocessors / std::max(1, gpu.site().pes_on_device));
}

GpuSettings gpu_settings_of(const PeGpu& gpu, const Setup& setup, const MoePath& path) {
  return {setup, shared_sms(gpu), path.node_ranks};
}

void GpuBackend::fill() {
  const Shape& shape = setup_.shape;
  std::vector<float> weights;
  for (std::int32_t token = 0; token < tokens(); ++token)
    for (const float weight : expected_weights(row_key(setup_.seed, me_, token), shape.top_k))
      weights.push_back(weight);
  // What experts write is theirs, so only what lies around it is looked at.
  poison_parts({&lies_.outputs, &lies_.weights_back});
  poison_parts(GpuBackend::plan_parts());
  gpu_.copy(at<float>(lies_.weights), weights.data(), weights.size() * sizeof(float));
  gpu_.copy(at<std::int32_t>(lies_.experts), mine_.experts.data(),
            mine_.experts.size() * sizeof(std::int32_t));
  launched(
      launch_fill({shape, me_, tokens(), setup_.seed, at<std::uint16_t>(lies_.values)}, stream()));
  if (setup_.bias) // as bias_of() of the host backend
    launched(
        launch_fill({shape, me_, tokens(), ~setup_.seed, at<std::uint16_t>(lies_.bias)}, stream()));
  if (setup_.format == Format::fp8 && !few())
    launched(launch_cast({shape.hidden, tokens(), at<std::uint16_t>(lies_.values),
                          at<std::uint8_t>(lies_.casts), at<float>(lies_.scales),
                          setup_.power_scales, shared_sms(gpu_)},
                         stream()));
  wait("the tokens");
}

GpuBackend::Waits GpuBackend::waits(int op) {
  const auto n = static_cast<std::size_t>(setup_.shape.n_ranks);
  Waits sums(2 * n);
  if (few()) {
    LowLatencyWords cells;
    gpu_.copy(&cells, memory_ + lies_.cells.offset, sizeof cells);
    std::copy_n(cells.wait_ns[op], n, sums.begin());
    for (std::size_t rank = 0; op == 0 && rank < n; ++rank) {
      sums[rank] = cells.begin_wait_ns[rank];
      sums[n + rank] = cells.wait_ns[0][rank] - sums[rank];
    }
    look_for_masked();
  } else {
    Cells cells;
    gpu_.copy(&cells, memory_ + lies_.cells.offset, sizeof cells);
    std::copy_n(cells.wait_ns[0], n, sums.begin());
    std::copy_n(cells.wait_ns[1], n, sums.begin() + static_cast<std::ptrdiff_t>(n));
  }
  return sums;
}

Times GpuBackend::times_since(const Waits& before, int op) {
  wait(op == 0 ? "dispatch" : "combine");
  Times times;
  times.total_us = timer_.elapsed_ns() / 1000;
  const Waits after = waits(op);
  const auto n = static_cast<std::size_t>(setup_.shape.n_ranks);
  for (std::size_t rank = 0; rank < n; ++rank) {
    const double until_begun = static_cast<double>(after[rank] - before[rank]) / 1000;
    const double until_done = static_cast<double>(after[n + rank] - before[n + rank]) / 1000;
    times.wait_us.push_back(until_begun + until_done);
    if (!few() || op == 0)
      times.begin_wait_us.push_back(until_begun);
    times.arrival_us = std::max(times.arrival_us, until_begun);
    times.transfer_us = std::max(times.transfer_us, until_done);
  }
  if (few() && op == 0) // of each source, from its beginning until its last row
    return times;
  // A combine of low latency has one wait, and nothing goes ahead.
  times.counts_us = few() ? 0 : times.arrival_us;
  times.transfer_us = std::max(0.0, times.total_us - times.counts_us);
  return times;
}

std::vector<double> GpuBackend::chain(int pairs, const std::function<void()>& between) {
  const auto [batches, each] = chain_batches(pairs);
  std::vector<double> periods_us;
  for (int batch = 0; batch < batches; ++batch) {
    timer_.begin(stream());
    for (int i = 0; i < each; ++i) {
      if (!few())
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
  if (few())
    look_for_masked();
  return periods_us;
}

double GpuBackend::half(Direction direction, Halves halves) {
  timer_.begin(stream());
  if (direction == Direction::combine)
    enqueue_combine(halves);
  else
    enqueue_dispatch(halves);
  if (direction == Direction::dispatch && halves == Halves::receive && setup_.by_expert)
    enqueue_pack();
  timer_.end(stream());
  wait(direction == Direction::combine ? "half of a combine" : "half of a dispatch");
  look_for_masked();
  return timer_.elapsed_ns() / 1000;
}

namespace {

/// The largest whose row a block's shared memory holds; 0: none.
std::int32_t most_hidden(const PeGpu& gpu, const Setup& setup, const MoePath& path) {
  const std::int32_t step = setup.format == Format::fp8 ? channels_per_scale : 8;
  Setup one = setup;
  std::int32_t holds = 0, too_many = setup.shape.hidden / step;
  while (holds + 1 < too_many) {
    const std::int32_t middle = holds + (too_many - holds) / 2;
    one.shape.hidden = middle * step;
    (gpu_settings_of(gpu, one, path).holds_a_row() ? holds : too_many) = middle;
  }
  return holds * step;
}

} // namespace

std::optional<BrokenRule> gpu_broken_rule(const PeGpu& gpu, const Setup& setup,
                                          const MoePath& path) {
  const Shape& shape = setup.shape;
  const auto at_most = [](const char* what, std::int32_t most, const std::string& why,
                          std::int32_t found, std::int32_t nearest) {
    return BrokenRule{what, fmt::format("must be {} at most{}", most, why),
                      fmt::format("{}", found), fmt::format("{}", nearest)};
  };
  const bool low = setup.mode == Mode::low_latency;
  if (!low && path.node_ranks > max_ranks_of_kernels)
    return at_most("PEs of a node", max_ranks_of_kernels,
                   " where kernels hand rows on; --flat sends each row straight to its rank",
                   path.node_ranks, max_ranks_of_kernels);
  if (setup.by_expert && shape.local_experts() > most_packed_experts)
    return at_most("num-experts", most_packed_experts * shape.n_ranks,
                   fmt::format(": kernels pack rows of {} experts of a rank", most_packed_experts),
                   shape.n_experts, most_packed_experts * shape.n_ranks);
  if (low && shape.max_tokens > most_rows_of_part)
    return at_most("num-tokens", most_rows_of_part,
                   " in low latency by kernels, which count a block's rows in 16 bits",
                   shape.max_tokens, most_rows_of_part);
  const GpuSettings settings = gpu_settings_of(gpu, setup, path);
  if (const std::int32_t most = settings.most_experts() / shape.n_ranks * shape.n_ranks;
      shape.n_experts > most)
    return at_most("num-experts", most, ": notify counts them in a block's shared memory",
                   shape.n_experts, most);
  if (!settings.holds_a_row()) {
    const std::int32_t most = most_hidden(gpu, setup, path);
    return at_most("hidden", most,
                   fmt::format(" with {} ranks: a block's shared memory has to hold a row and its "
                               "records",
                               shape.n_ranks),
                   shape.hidden, most);
  }
  const int least_sms = settings.least_num_sms(), most_sms = std::max(least_sms, shared_sms(gpu));
  if (setup.num_sms > most_sms)
    return at_most("num-sms", most_sms, fmt::format(", which a PE has of {}", gpu.site().name),
                   setup.num_sms, most_sms);
  if (setup.num_sms > 0 && setup.num_sms < least_sms)
    return BrokenRule{"num-sms",
                      fmt::format("must be {} at least: the blocks of {} have different parts",
                                  least_sms, low ? "a low-latency dispatch" : "notify"),
                      fmt::format("{}", setup.num_sms), fmt::format("{}", least_sms)};
  return std::nullopt;
}

std::string gpu_backend_cannot(const PeGpu& gpu, const Setup& setup, const MoePath& path) {
  if (setup.weights_home && setup.mode == Mode::low_latency)
    return "low latency applies the weights, and does not send them back";
  return unreachable_rank(path, gpu.job().pe, gpu.ways());
}

std::size_t gpu_backend_bytes(const Setup& setup, const MoePath& path) {
  if (!path.is_internode())
    return GpuLayout(setup).size_bytes;
  return path.is_low_latency() ? FarLatencyLayout(setup).size_bytes
                               : HybridLayout(setup, path.node_ranks).size_bytes;
}

std::unique_ptr<Backend> make_gpu_backend(PeGpu& gpu, std::byte* memory, const Setup& setup,
                                          const MoePath& path, std::int32_t rank) {
  if (!path.is_internode())
    return std::make_unique<GpuBackend>(gpu, memory, setup, path, rank);
  return path.is_low_latency() ? make_far_latency_gpu_backend(gpu, memory, setup, path, rank)
                               : make_hybrid_gpu_backend(gpu, memory, setup, path, rank);
}

void GpuBackend::run_experts_of_rows() {
  each_source([&](std::int32_t source, const Received& received) {
    launched(launch_experts({setup_.shape, record_scales(), setup_.combine, me_, received,
                             reinterpret_cast<std::uint16_t*>(outputs_of(source)), no_expert,
                             weights_back_of(source)},
                            stream()));
  });
}

void GpuBackend::run_packed_experts() {
  const PackedRows expected = expected_packed(setup_.shape, left_, me_);
  for (std::size_t expert = 0; expert < expected.rows.size(); ++expert) {
    const std::int64_t first = expected.offsets[expert];
    if (!expected.rows[expert].empty())
      launched(launch_experts({setup_.shape, record_scales(), setup_.combine, me_,
                               packed_rows(expected.offsets[expert], expected.rows[expert].size()),
                               at<std::uint16_t>(lies_.outputs) + first * setup_.shape.hidden,
                               static_cast<std::int32_t>(expert)},
                              stream()));
  }
}

Received GpuBackend::packed_rows(std::int32_t first, std::size_t count) const {
  const std::int64_t row = first;
  return {at<std::byte>(lies_.packed_rows) + row * setup_.shape.value_bytes(setup_.format),
          at<std::byte>(lies_.packed_records) + row * record_.bytes(),
          static_cast<std::int32_t>(count)};
}

std::optional<std::string> GpuBackend::wrong_packed() {
  if (!setup_.by_expert)
    return std::nullopt;
  const PackedRows expected = expected_packed(setup_.shape, left_, me_);
  if (read<std::int32_t>(lies_.packed_offsets, expected.offsets.size()) != expected.offsets)
    return "the experts' packed rows do not begin where the routing says";
  const auto counts = read<std::int32_t>(lies_.packed_counts, expected.rows.size());
  clear_wrong();
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
        {setup_.shape, record_scales(), setup_.seed, received, at<Wrong>(lies_.wrong)}, stream()));
  }
  if (const Wrong wrong = take_wrong(); wrong.rows != 0)
    return fmt::format("{} packed rows are wrong; of one, row {} of its expert, word {}: expected "
                       "{:#x}, found {:#x}",
                       wrong.rows, wrong.row_and_word >> 32,
                       static_cast<std::int32_t>(wrong.row_and_word) - 1, wrong.expected,
                       wrong.found);
  return std::nullopt;
}

void GpuBackend::look_between_experts() {
  const PackedRows expected = expected_packed(setup_.shape, left_, me_);
  for (std::size_t expert = 0; expert < expected.rows.size(); ++expert) {
    const bool last = expert + 1 == expected.rows.size();
    const Received used = packed_rows(expected.offsets[expert], expected.rows[expert].size());
    const Received next = packed_rows(expected.offsets[expert + 1], 0);
    look_untouched(used.rows + std::int64_t{used.count} * setup_.shape.value_bytes(setup_.format),
                   last ? end_of(lies_.packed_rows) : next.rows);
    look_untouched(used.records + std::int64_t{used.count} * record_.bytes(),
                   last ? end_of(lies_.packed_records) : next.records);
  }
}

void GpuBackend::look_for_masked() {
  LowLatencyWords cells;
  gpu_.copy(&cells, memory_ + lies_.cells.offset, sizeof cells);
  std::vector<std::int32_t> masked;
  for (std::int32_t rank = 0; rank < setup_.shape.n_ranks; ++rank)
    if (cells.masked[rank] != 0)
      masked.push_back(rank);
  if (masked == masked_)
    return;
  if (setup_.patience_us <= 0)
    throw Error(ExitCode::deadline, "low latency", fmt::format("wait for PE {} in", masked.front()),
                fmt::format("rank {} has masked it: it did not come in time", me_),
                fmt::format("look at the output of PE {}, or {}", masked.front(), raise_timeout()));
  masked_ = masked;
  left_ = without_ranks(setup_.shape, *setup_.routing, me_, masked);
  row_counts_ = row_counts(setup_.shape, left_);
}

std::optional<std::string> GpuBackend::wrong_counts() {
  const auto n = static_cast<std::size_t>(setup_.shape.n_ranks);
  const std::vector<std::int32_t>& expected = row_counts_;
  if (few()) {
    const auto counts = read<std::int32_t>(lies_.counts, n);
    for (std::size_t source = 0; source < n; ++source)
      if (const std::int32_t sent = is_masked(static_cast<std::int32_t>(source))
                                        ? -1
                                        : expected[source * n + static_cast<std::size_t>(me_)];
          counts[source] != sent)
        return fmt::format("{} rows are counted from rank {}, and the routing sends {}",
                           counts[source], source, sent);
    return std::nullopt;
  }
  if (read<std::int32_t>(lies_.counts, n * n) != expected)
    return "the counts of rows are not the routing's";
  const auto experts = expected_expert_counts(setup_.shape, *setup_.routing, me_);
  if (read<std::int32_t>(lies_.expert_counts, experts.size()) != experts)
    return "the counts of the experts' tokens are not the routing's";
  return std::nullopt;
}

std::vector<const GpuPart*> GpuBackend::written_parts() const {
  std::vector<const GpuPart*> parts = {&lies_.rows, &lies_.records, &lies_.results,
                                       &lies_.weights_home};
  if (setup_.by_expert)
    parts.insert(parts.end(), {&lies_.packed_rows, &lies_.packed_records});
  return parts;
}

std::vector<const GpuPart*> GpuBackend::plan_parts() const {
  std::vector<const GpuPart*> parts = {&lies_.slots, &lies_.bases, &lies_.counts,
                                       &lies_.expert_counts};
  if (setup_.by_expert)
    parts.insert(parts.end(), {&lies_.packed_counts, &lies_.packed_offsets, &lies_.places});
  return parts;
}

std::vector<const GpuPart*> GpuBackend::guarded_parts() const {
  std::vector<const GpuPart*> parts = written_parts();
  const std::vector<const GpuPart*> plan = plan_parts();
  parts.insert(parts.end(), plan.begin(), plan.end());
  // Experts write these; only what lies around is looked at.
  parts.insert(parts.end(), {&lies_.outputs, &lies_.weights_back});
  return parts;
}

std::optional<std::string> GpuBackend::wrong_rows() {
  clear_wrong();
  each_source([&](std::int32_t, const Received& received) {
    launched(launch_check_rows(
        {setup_.shape, record_scales(), setup_.seed, received, at<Wrong>(lies_.wrong)}, stream()));
  });
  if (const Wrong wrong = take_wrong(); wrong.rows != 0)
    return fmt::format("{} rows are wrong; of one, row {} of its source, word {}: expected {:#x}, "
                       "found {:#x}",
                       wrong.rows, wrong.row_and_word >> 32,
                       static_cast<std::int32_t>(wrong.row_and_word) - 1, wrong.expected,
                       wrong.found);
  const std::vector<RowSource> rows = expected_rows(setup_.shape, left_, me_);
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

/// High throughput leaves no gaps between rows.
void GpuBackend::look_behind_rows() {
  const std::int64_t rows = rows_of(row_counts_.data(), setup_.shape.n_ranks, me_);
  look_untouched(memory_ + lies_.rows.offset + rows * setup_.shape.value_bytes(setup_.format),
                 end_of(lies_.rows));
  look_untouched(memory_ + lies_.records.offset + rows * record_.bytes(), end_of(lies_.records));
}

/// Low latency: behind the rows of each source, in both halves. (All calls since the memory was
/// filled had the same routing, so each half has the same gaps.) A masked one may write its slots
/// late: nobody reads them.
void GpuBackend::look_between_slots() {
  const std::int64_t value_bytes = setup_.shape.value_bytes(setup_.format);
  for (std::int32_t half = 0; half < 2; ++half)
    for (std::int32_t source = 0; source < setup_.shape.n_ranks; ++source) {
      if (is_masked(source))
        continue;
      const std::int64_t slots = std::int64_t{half} * setup_.shape.max_rows();
      const std::int64_t begin = slots + fixed_slot(setup_.shape, source, rows_from(source));
      const std::int64_t end = slots + fixed_slot(setup_.shape, source + 1, 0);
      const std::byte* const rows = memory_ + lies_.rows.offset;
      const std::byte* const records = memory_ + lies_.records.offset;
      look_untouched(rows + begin * value_bytes, rows + end * value_bytes);
      look_untouched(records + begin * record_.bytes(), records + end * record_.bytes());
    }
}

std::optional<std::string> GpuBackend::wrong_untouched() {
  clear_wrong();
  for (const GpuPart* part : guarded_parts()) {
    const std::byte* const begin = memory_ + part->offset;
    look_untouched(begin - gpu_guard_bytes, begin);
    look_untouched(end_of(*part), end_of(*part) + gpu_guard_bytes);
  }
  if (few())
    look_between_slots();
  else
    look_behind_rows();
  if (setup_.by_expert)
    look_between_experts();
  if (take_wrong().rows != 0)
    return "something was written beside the rows";
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
  clear_wrong();
  // Only while it is looked at: a call leaves out what masked ranks would add by itself.
  const auto put_choices = [this](const RankRouting& routing) {
    if (!masked_.empty())
      gpu_.copy(at<std::int32_t>(lies_.experts), routing.experts.data(),
                routing.experts.size() * sizeof(std::int32_t));
  };
  put_choices(left_[static_cast<std::size_t>(me_)]);
  launched(launch_check_combined(
      {setup_.shape, record_scales(), setup_.combine, me_, tokens(), setup_.seed,
       at<std::int32_t>(lies_.experts), at<float>(lies_.weights), bias(),
       at<std::uint16_t>(lies_.results), at<Wrong>(lies_.wrong), setup_.model_node_ranks()},
      stream()));
  const Wrong wrong = take_wrong();
  put_choices(mine_);
  if (wrong.rows != 0)
    return fmt::format("rank {}: {} tokens are wrong; of one, token {}, channel {}: expected "
                       "{:#06x}, found {:#06x}",
                       me_, wrong.rows, wrong.row_and_word >> 32,
                       static_cast<std::int32_t>(wrong.row_and_word) - 1, wrong.expected,
                       wrong.found);
  for (const auto look : {&GpuBackend::wrong_weights_home, &GpuBackend::wrong_untouched})
    if (const auto wrong_there = (this->*look)())
      return fmt::format("rank {}: {}", me_, *wrong_there);
  return std::nullopt;
}

std::optional<std::string> GpuBackend::wrong_weights_home() {
  const auto top_k = static_cast<std::size_t>(setup_.shape.top_k);
  const auto count = static_cast<std::size_t>(setup_.weights_home ? tokens() : 0);
  const auto weights = read<float>(lies_.weights_home, count * top_k);
  for (std::size_t token = 0; token < count; ++token)
    if (auto wrong = wrong_weights(setup_, me_, static_cast<std::int32_t>(token),
                                   weights.data() + token * top_k))
      return wrong;
  return std::nullopt;
}

} // namespace shmemctl::moe
