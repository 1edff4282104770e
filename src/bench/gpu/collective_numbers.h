// Numbers that measured reductions of kernels add up, on the host: no GPU in it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bench/collectives.h"

namespace shmemctl::bench {

std::size_t width_of(CollectiveNumber number); ///< in bytes

/// Bits of element `index` of a PE's source. int64: the pattern's words. Floating point: whole
/// numbers, exact in the type, whose sums are exact in 32 bits; those of bf16 and fp16 mostly are
/// not in the type, so that the result shows how it was rounded.
std::uint64_t source_bits(CollectiveNumber number, std::uint64_t seed, int pe, std::uint64_t index);
/// Bits of the sum of all PEs' elements `index`: int64 wraps around, bf16 and fp16 are added up as
/// 32-bit floats in the order of the PEs and rounded once, to nearest, ties to even.
std::uint64_t sum_bits(CollectiveNumber number, std::uint64_t seed, int n_pes, std::uint64_t index);

/// Rounded to nearest, ties to even; what is too large is infinite.
std::uint16_t fp16_of_float(float value);

} // namespace shmemctl::bench
