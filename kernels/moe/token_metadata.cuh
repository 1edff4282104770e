// A row before it reaches its destination rank, and the metadata that is written for it there.
#pragma once

#include "kernels/device/scope.cuh"
#include "kernels/moe/token_metadata.h"
#include "src/model/moe/number_formats.h"

namespace shmemctl::moe {

/// A row at its source rank, or in a receive buffer before it is forwarded.
struct TokenRow {
  const std::byte* values;
  const float* scales;
  const std::int32_t* experts; ///< experts of all ranks
  const std::uint32_t* weights;
  std::int32_t source, token;
};

__device__ inline std::uint32_t bits_of_number(std::int32_t number) {
  return static_cast<std::uint32_t>(number);
}

/// Word `word` of the scales of a record, less than MetadataLayout::scale_words.
__device__ inline std::uint32_t scale_word(const Shape& shape, Scales kind, const float* scales,
                                           std::int32_t word) {
  if (kind != Scales::ue8m0)
    return bits_of(scales[word]);
  std::uint32_t bytes = 0;
  for (std::int32_t i = 0; i < 4; ++i)
    if (const std::int32_t scale = word * 4 + i; scale < shape.scales_per_row())
      bytes |= std::uint32_t{ue8m0_of_scale(scales[scale])} << (8 * i);
  return bytes;
}

/// Word `word` of the metadata of a row at `rank`.
__device__ inline std::uint32_t record_word(const Shape& shape, Scales kind,
                                            const MetadataLayout& layout, const TokenRow& row,
                                            std::int32_t rank, std::int32_t word) {
  if (word < layout.scale_words)
    return scale_word(shape, kind, row.scales, word);
  if (word < layout.source()) {
    const bool is_weight = word >= layout.weights();
    const std::int32_t choice = word - (is_weight ? layout.weights() : layout.experts());
    const std::int32_t local = shape.local_expert(row.experts[choice], rank);
    return !is_weight ? bits_of_number(local) : local == no_expert ? 0 : row.weights[choice];
  }
  return word == layout.source()  ? bits_of_number(row.source)
         : word == layout.token() ? bits_of_number(row.token)
                                  : 0;
}
/// Writes the metadata of a row at `rank`. Called by all threads of the scope.
template <class Scope>
__device__ inline void write_record(const Shape& shape, Scales kind, const MetadataLayout& layout,
                                    const TokenRow& row, std::int32_t rank, std::byte* to) {
  auto* const words = reinterpret_cast<std::uint32_t*>(to);
  for (std::int32_t word = Scope::rank(); word < layout.words(); word += Scope::size())
    words[word] = record_word(shape, kind, layout, row, rank, word);
}

} // namespace shmemctl::moe
