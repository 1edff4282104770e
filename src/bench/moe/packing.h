// Where received rows lie when they are packed by expert (src/moe/plan.h).
#pragma once

#include <cstdint>
#include <vector>

#include "src/moe/shape.h"

namespace shmemctl::moe {

struct Packing {
  std::vector<std::int32_t> counts;  ///< by local expert: its rows
  std::vector<std::int32_t> offsets; ///< by local expert: its first row; then the end of all
  std::vector<std::int32_t> places;  ///< [received row][choice]; -1: of another rank, or masked
};
/// @param choices by received row: its shape.top_k experts, of all ranks
Packing packing_of(const Shape& shape, const std::vector<const std::int32_t*>& choices,
                   std::int32_t rank);

} // namespace shmemctl::moe
