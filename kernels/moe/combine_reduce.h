// The shape of a combine reduction, the shared memory that it takes and its launch settings. For
// host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/moe/launch_config.h"
#include "src/base/host_device.h"

namespace shmemctl::moe {

/// What the reductions of all combines have in common.
struct ReduceShape {
  std::int32_t tokens, row_bytes;
  std::int32_t rows;         ///< most rows of a token; they are added in the order of their index
  std::int32_t chunk_bytes;  ///< bytes of a row that are loaded at a time; a multiple of 16
  std::int32_t stages;       ///< stages per warp
  const std::uint16_t* bias; ///< [tokens][row_bytes / 2], or nullptr
  std::uint16_t* results;    ///< [tokens][row_bytes / 2]

  SHMEMCTL_HOST_DEVICE constexpr std::int32_t stage_bytes() const { return rows * chunk_bytes; }
};
/// Shared memory of a stage besides its rows and weights: a barrier and a mask of its rows.
inline constexpr std::size_t reduce_stage_bytes = 16;
/// Shared memory of a block.
constexpr std::size_t reduce_shared_bytes(const ReduceShape& shape, int warps, bool weighted) {
  return static_cast<std::size_t>(warps) * static_cast<std::size_t>(shape.stages) *
         (static_cast<std::size_t>(shape.stage_bytes()) + reduce_stage_bytes +
          (weighted ? static_cast<std::size_t>(shape.rows) * sizeof(float) : 0));
}

/// Launch settings of a combine.
struct ReduceTuning {
  Tuning tuning;
  int chunk_bytes;
};
/// At most `warps` warps, with chunks small enough that each warp has at least one stage.
/// @param rows most rows of a token
constexpr ReduceTuning reduce_tuning(int rows, int row_bytes, int sms, int warps, int chunk_bytes) {
  if (chunk_bytes > row_bytes)
    chunk_bytes = row_bytes;
  constexpr int shared = static_cast<int>(max_shared_bytes) - own_shared_bytes;
  const auto stage_bytes = [rows](int chunk) {
    return rows * (chunk + static_cast<int>(sizeof(float))) + static_cast<int>(reduce_stage_bytes);
  };
  while (warps * stage_bytes(chunk_bytes) > shared && chunk_bytes > 512)
    chunk_bytes = chunk_bytes / 2 / 16 * 16;
  while (warps * stage_bytes(chunk_bytes) > shared && warps > 1)
    warps /= 2;
  const int stages = shared / (warps * stage_bytes(chunk_bytes));
  return {{sms, warps, stages > 4 ? 4 : stages < 1 ? 1 : stages}, chunk_bytes};
}

} // namespace shmemctl::moe
