// The shape of a dispatch and a combine: the numbers that determine all sizes. For host and device.
#pragma once

#include <cstdint>

#include "src/base/host_device.h"

namespace shmemctl::moe {

inline constexpr int max_top_k = 32;           ///< a warp's lanes hold a token's choices
inline constexpr int max_ranks = 64;           ///< a RankMask has a bit for each
inline constexpr int max_ranks_of_kernels = 8; ///< most ranks per node that our kernels support
inline constexpr int channels_per_scale = 128; ///< FP8: values that share a scale
inline constexpr std::int32_t no_expert = -1;  ///< a choice that is masked

/// The format of the values in a dispatch. A combine is always BF16.
enum class Format : std::int32_t {
  bf16,
  fp8 ///< e4m3, one FP32 scale per 128 channels
};

/// Experts are assigned in order: rank r has local_experts() experts from r * local_experts() on.
struct Shape {
  std::int32_t n_ranks = 1;
  std::int32_t n_experts = 1;  ///< experts of all ranks together
  std::int32_t top_k = 1;      ///< experts that a token chooses; some may be masked (no_expert)
  std::int32_t hidden = 8;     ///< channels of a token
  std::int32_t max_tokens = 0; ///< tokens that a rank may send: its capacity
  std::int32_t expert_alignment = 1; ///< counts per expert are rounded up to a multiple of this

  SHMEMCTL_HOST_DEVICE constexpr std::int32_t local_experts() const { return n_experts / n_ranks; }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t rank_of_expert(std::int32_t expert) const {
    return expert / local_experts();
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t first_expert(std::int32_t rank) const {
    return rank * local_experts();
  }
  /// The expert's number on that rank; no_expert if it is masked or another rank's.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t local_expert(std::int32_t expert,
                                                           std::int32_t rank) const {
    const std::int32_t local = expert - first_expert(rank);
    return expert >= 0 && local >= 0 && local < local_experts() ? local : no_expert;
  }
  /// The most rows that a rank can receive: every token of every rank once.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t max_rows() const { return n_ranks * max_tokens; }

  SHMEMCTL_HOST_DEVICE constexpr std::int32_t scales_per_row() const {
    return hidden / channels_per_scale;
  }
  /// A row's values, without scales and metadata.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t value_bytes(Format format) const {
    return format == Format::bf16 ? hidden * 2 : hidden;
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t scale_bytes(Format format) const {
    return format == Format::bf16 ? 0 : scales_per_row() * 4;
  }
  /// A row as DeepEP counts it: values and scales.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t row_bytes(Format format) const {
    return value_bytes(format) + scale_bytes(format);
  }
};

} // namespace shmemctl::moe
