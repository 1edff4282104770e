// Where the GPU backend's things lie in its memory.
#pragma once

#include <string>
#include <vector>

#include "kernels/moe/check.h"
#include "kernels/moe/high_throughput.h"
#include "kernels/moe/low_latency.h"
#include "kernels/moe/pack.h"
#include "src/bench/moe/backend.h"

namespace shmemctl::moe {

Scales scales_of(const Setup& setup);
/// Setup::scale_bytes of kernels: UE8M0 takes one, where they carry it.
std::int32_t scale_bytes_of(const Setup& setup);

/// A part of the memory, with guards around it that nobody may write.
struct GpuPart {
  std::size_t offset = 0, size_bytes = 0;
};
inline constexpr std::size_t gpu_guard_bytes = 1024;
inline constexpr int gpu_poison = 0xff; ///< NaN as BF16 and FP32, and no index

struct GpuLayout {
  explicit GpuLayout(const Setup& setup);

  GpuPart cells, expert_words;    ///< symmetric words
  GpuPart rows, records, outputs; ///< symmetric; rows and records of low latency: both halves
  GpuPart values, casts, scales, experts, weights, bias, results; ///< of this rank
  GpuPart slots, bases, counts, expert_counts, wrong;
  GpuPart weights_back, weights_home; ///< the first one symmetric; where weights come home
  GpuPart places;                     ///< symmetric; by expert
  GpuPart packed_rows, packed_records, packed_counts, packed_offsets; ///< by expert
  std::size_t size_bytes = 0;
  std::vector<MemoryUse> uses; ///< what a program that calls the kernels would need

protected:
  GpuPart add(std::size_t size_bytes);
};

} // namespace shmemctl::moe
