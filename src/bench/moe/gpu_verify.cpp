// What the GPU backend's calls must leave.
#include <fmt/format.h>

#include "src/bench/moe/gpu_backend_class.h"

namespace shmemctl::moe {

std::optional<std::string> GpuBackend::wrong_counts() {
  const auto n = static_cast<std::size_t>(setup_.shape.n_ranks);
  const std::vector<std::int32_t> expected = row_counts(setup_.shape, *setup_.routing);
  if (few()) {
    const auto counts = read<std::int32_t>(lies_.counts, n);
    for (std::size_t source = 0; source < n; ++source)
      if (const std::int32_t sent = expected[source * n + static_cast<std::size_t>(me_)];
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

std::optional<std::string> GpuBackend::wrong_records() {
  const std::vector<RowSource> rows = expected_rows(setup_.shape, *setup_.routing, me_);
  std::size_t next = 0;
  std::optional<std::string> wrong;
  each_source([&](std::int32_t, const Received& received) {
    const auto words = static_cast<std::size_t>(record_.words());
    std::vector<std::uint32_t> records(static_cast<std::size_t>(received.count) * words);
    gpu_.copy(records.data(), received.records, records.size() * sizeof(std::uint32_t));
    for (std::size_t i = 0; i < static_cast<std::size_t>(received.count) && !wrong; ++i, ++next) {
      const RowSource& from = rows[next];
      const std::uint32_t* const record = records.data() + i * words;
      const auto word = [&](std::int32_t at) { return record[at]; };
      const std::uint32_t key = row_key(setup_.seed, from.rank, from.token);
      bool well = word(record_.source()) == static_cast<std::uint32_t>(from.rank) &&
                  word(record_.token()) == static_cast<std::uint32_t>(from.token);
      for (std::int32_t k = 0; k < setup_.shape.top_k; ++k) {
        const std::int32_t local = setup_.shape.local_expert(
            (*setup_.routing)[static_cast<std::size_t>(from.rank)].choices(from.token)[k], me_);
        const float weight = local == no_expert ? 0 : payload_weight(key, k);
        well = well && word(record_.experts() + k) == static_cast<std::uint32_t>(local) &&
               word(record_.weights() + k) == bits_of(weight);
      }
      if (!well)
        wrong = fmt::format("row {}: source, choices or weights are not those of token {} of rank "
                            "{}",
                            next, from.token, from.rank);
    }
  });
  return wrong;
}

std::optional<std::string> GpuBackend::wrong_untouched() {
  clear_wrong();
  const std::byte *rows_end = nullptr, *records_end = nullptr;
  each_source([&](std::int32_t, const Received& received) {
    rows_end = received.rows +
               static_cast<std::int64_t>(received.count) * setup_.shape.value_bytes(setup_.format);
    records_end = received.records + static_cast<std::int64_t>(received.count) * record_.bytes();
  });
  for (const GpuPart* part : {&lies_.rows, &lies_.records, &lies_.outputs, &lies_.results}) {
    const std::byte* const begin = memory_ + part->offset;
    look_untouched(begin - gpu_guard_bytes, begin);
    look_untouched(begin + part->size_bytes, begin + part->size_bytes + gpu_guard_bytes);
  }
  if (!few()) {
    look_untouched(rows_end, memory_ + lies_.rows.offset + lies_.rows.size_bytes);
    look_untouched(records_end, memory_ + lies_.records.offset + lies_.records.size_bytes);
  }
  if (take_wrong().rows != 0)
    return "something was written beside the rows";
  return std::nullopt;
}

std::optional<std::string> GpuBackend::verify_dispatch() {
  if (const auto wrong = wrong_counts())
    return fmt::format("rank {}: {}", me_, *wrong);
  clear_wrong();
  each_source([&](std::int32_t, const Received& received) {
    launched(launch_check_rows(
        {setup_.shape, record_scales(), setup_.seed, received, at<Wrong>(lies_.wrong)}, stream()));
  });
  if (const Wrong wrong = take_wrong(); wrong.rows != 0)
    return fmt::format("rank {}: {} rows are wrong; of one, row {} of its source, word {}: "
                       "expected {:#x}, found {:#x}",
                       me_, wrong.rows, wrong.row_and_word >> 32,
                       static_cast<std::int32_t>(wrong.row_and_word) - 1, wrong.expected,
                       wrong.found);
  if (const auto wrong = wrong_records())
    return fmt::format("rank {}, {}", me_, *wrong);
  if (const auto wrong = wrong_untouched())
    return fmt::format("rank {}: {}", me_, *wrong);
  return std::nullopt;
}

std::optional<std::string> GpuBackend::verify_combine() {
  clear_wrong();
  launched(
      launch_check_combined({setup_.shape, record_scales(), setup_.combine, me_, tokens(),
                             setup_.seed, at<std::int32_t>(lies_.experts), at<float>(lies_.weights),
                             bias(), at<std::uint16_t>(lies_.results), at<Wrong>(lies_.wrong)},
                            stream()));
  if (const Wrong wrong = take_wrong(); wrong.rows != 0)
    return fmt::format("rank {}: {} tokens are wrong; of one, token {}, channel {}: expected "
                       "{:#06x}, found {:#06x}",
                       me_, wrong.rows, wrong.row_and_word >> 32,
                       static_cast<std::int32_t>(wrong.row_and_word) - 1, wrong.expected,
                       wrong.found);
  if (const auto wrong = wrong_untouched())
    return fmt::format("rank {}: {}", me_, *wrong);
  return std::nullopt;
}

} // namespace shmemctl::moe
