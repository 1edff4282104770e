// What a gathering of rows is made of, and the shared memory that it takes. For host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/host_device.h"

namespace shmemctl::moe {

/// What all gatherings have in common.
struct ReduceShape {
  std::int32_t tokens, row_bytes;
  std::int32_t rows;         ///< of a token at most, in the order in which they are added
  std::int32_t chunk_bytes;  ///< of a row at a time: a multiple of 16
  std::int32_t stages;       ///< of a warp
  const std::uint16_t* bias; ///< [tokens][row_bytes / 2], or nullptr
  std::uint16_t* results;    ///< the same

  SHMEMCTL_HOST_DEVICE constexpr std::int32_t stage_bytes() const { return rows * chunk_bytes; }
};
/// Of a stage beside its rows and weights: a barrier, and which rows there are.
inline constexpr std::size_t reduce_stage_bytes = 16;
/// Of a block.
constexpr std::size_t reduce_shared_bytes(const ReduceShape& shape, int warps, bool weighted) {
  return static_cast<std::size_t>(warps) * static_cast<std::size_t>(shape.stages) *
         (static_cast<std::size_t>(shape.stage_bytes()) + reduce_stage_bytes +
          (weighted ? static_cast<std::size_t>(shape.rows) * sizeof(float) : 0));
}

} // namespace shmemctl::moe
