// The layout of the GPU backend's memory: an exchange, a plan, and the tokens, in this order.
#pragma once

#include <vector>

#include "kernels/moe/check.h"
#include "src/instruments/bench/moe/backend.h"
#include "src/runtime/moe/exchange_layout.h"

namespace shmemctl::moe {

/// Setup::scale_bytes for kernels: 1 for UE8M0 scales, otherwise 4.
std::int32_t scale_bytes_of(const Setup& setup);

inline constexpr std::size_t gpu_guard_bytes = 1024; ///< around each region; must not be written
/// The value of poison bytes: NaN as BF16 and FP32, and not a valid index.
inline constexpr int gpu_poison = 0xff;

/// What an application would provide itself (tokens and results), and the result of verification.
struct TokenLayout : GpuRegions {
  TokenLayout(const Setup& setup, std::size_t begin);

  GpuRegion values, casts, scales, experts, weights, bias; ///< memory for this rank's tokens
  GpuRegion results, combined_weights;
  GpuRegion wrong;
};

/// All offsets are from the beginning of one block of symmetric memory.
struct GpuLayout {
  GpuLayout(const Setup& setup, const MoePath& path);

  ExchangeLayout exchange;
  PlanLayout plan;
  TokenLayout tokens;
  std::size_t plan_begin;

  std::size_t size_bytes() const { return tokens.size_bytes; }
  /// The memory that an application which uses these kernels would need.
  std::vector<MemoryUse> uses() const;
};

} // namespace shmemctl::moe
