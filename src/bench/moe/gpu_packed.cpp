// The experts' part, and rows packed by expert, of the GPU backend.
#include <fmt/format.h>

#include "src/bench/moe/gpu_backend_class.h"

namespace shmemctl::moe {

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

} // namespace shmemctl::moe
