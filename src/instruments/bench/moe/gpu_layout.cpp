#include "src/instruments/bench/moe/gpu_layout.h"

namespace shmemctl::moe {

namespace {

/// The aligned offset at which the plan begins, after the exchange.
std::size_t aligned_begin(std::size_t end) {
  return (end + 255) / 256 * 256;
}

} // namespace

std::int32_t scale_bytes_of(const Setup& setup) {
  return setup.scales() == Scales::ue8m0 ? 1 : 4;
}

TokenLayout::TokenLayout(const Setup& setup, std::size_t begin)
    : GpuRegions(gpu_guard_bytes, begin) {
  const Shape& shape = setup.shape;
  const auto count = [](std::int32_t number) { return static_cast<std::size_t>(number); };
  // The size is the same on all ranks, although they may have different numbers of tokens.
  const std::size_t most = count(shape.max_tokens);
  const std::size_t hidden = count(shape.hidden) * sizeof(std::uint16_t);
  const bool casts_before = setup.format == Format::fp8 && !setup.is_low_latency();
  values = add(most * hidden);
  casts = add(casts_before ? most * count(shape.hidden) : 0);
  scales = add(casts_before ? most * count(shape.scales_per_row()) * sizeof(float) : 0);
  experts = add(most * count(shape.top_k) * sizeof(std::int32_t));
  weights = add(most * count(shape.top_k) * sizeof(float));
  bias = add(setup.bias ? most * hidden : 0);
  results = add(most * hidden);
  combined_weights = add(setup.combined_weights ? most * count(shape.top_k) * sizeof(float) : 0);
  wrong = add(sizeof(Mismatch));
}

GpuLayout::GpuLayout(const Setup& setup, const MoePath& path)
    : exchange(setup, path, gpu_guard_bytes),
      plan(setup, path, gpu_guard_bytes, aligned_begin(exchange.size_bytes)),
      tokens(setup, aligned_begin(plan.size_bytes)),
      plan_begin(aligned_begin(exchange.size_bytes)) {}

std::vector<MemoryUse> GpuLayout::uses() const {
  std::vector<MemoryUse> all = exchange.uses;
  all.insert(all.end(), plan.uses.begin(), plan.uses.end());
  return all;
}

} // namespace shmemctl::moe
