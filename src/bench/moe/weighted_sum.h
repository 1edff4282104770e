// A row that comes back, with its weight.
#pragma once

#include <cstdint>
#include <vector>

namespace shmemctl::moe {

/// totals += weight * row, each rounded once.
/// @param row as many BF16 values as there are totals
void add_weighted(const std::uint16_t* row, float weight, std::vector<float>& totals);

} // namespace shmemctl::moe
