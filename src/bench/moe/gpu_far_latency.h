// The GPU backend's low latency where some PEs are reached by a network only.
#pragma once

#include "kernels/moe/low_latency_internode.h"
#include "src/bench/moe/gpu_backend.h"
#include "src/bench/moe/gpu_layout.h"

namespace shmemctl::moe {

struct FarLatencyLayout : GpuLayout {
  explicit FarLatencyLayout(const Setup& setup);

  GpuPart row_words, back_words;       ///< symmetric words
  GpuPart rows_out, records_out, back; ///< symmetric rows
  GpuPart cast_rows, cast_scales;      ///< of this rank, FP8
  GpuPart far_places;                  ///< of this rank, by expert
};

std::unique_ptr<Backend> make_far_latency_gpu_backend(PeGpu& gpu, std::byte* memory,
                                                      const Setup& setup, std::int32_t rank);

} // namespace shmemctl::moe
