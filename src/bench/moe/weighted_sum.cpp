#include "src/bench/moe/weighted_sum.h"

#include "src/moe/number_formats.h"

namespace shmemctl::moe {

namespace {

inline void add_weighted_row(const std::uint16_t* row, float weight, std::vector<float>& totals) {
  for (std::size_t channel = 0; channel < totals.size(); ++channel)
    totals[channel] = multiply_add(weight, float_of_bf16(row[channel]), totals[channel]);
}

#if defined(__x86_64__)
/// The same bits by the processor's own instruction, where the C library would be called for each.
[[gnu::target("fma"), gnu::flatten]] void
add_weighted_by_fma(const std::uint16_t* row, float weight, std::vector<float>& totals) {
  add_weighted_row(row, weight, totals);
}
#endif

} // namespace

void add_weighted(const std::uint16_t* row, float weight, std::vector<float>& totals) {
#if defined(__x86_64__)
  static const bool has_fma = __builtin_cpu_supports("fma") != 0;
  if (has_fma)
    return add_weighted_by_fma(row, weight, totals);
#endif
  add_weighted_row(row, weight, totals);
}

} // namespace shmemctl::moe
