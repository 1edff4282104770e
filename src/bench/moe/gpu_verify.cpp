// What the GPU backend's calls must leave.
#include <fmt/format.h>

#include "src/base/timeout_words.h"
#include "src/bench/moe/gpu_backend_class.h"
#include "src/bench/moe/record_check.h"
#include "src/bench/moe/rows.h"

namespace shmemctl::moe {

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
    throw Error(ExitCode::deadline, "low-latency dispatch",
                fmt::format("receive from PE {}", masked.front()),
                fmt::format("PE {} has masked it after a timeout", me_),
                fmt::format("check the output of PE {}, or {}", masked.front(), raise_timeout()));
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
