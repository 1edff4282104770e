// The fields within one row as the host backend sends it: values, scales and metadata are
// contiguous, so that one put carries the whole row. Which slot a token's row takes at its
// destination is in src/model/moe/plan.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/instruments/bench/moe/backend.h"

namespace shmemctl::moe {

/// Where each field of a row begins.
class RowFields {
public:
  explicit RowFields(const Setup& setup);
  /// From one row to the next: a multiple of 16.
  std::size_t stride_bytes() const { return stride_bytes_; }
  /// Values and scales.
  std::size_t payload_bytes() const { return payload_bytes_; }

  /// Size of a returned row, a multiple of 16: BF16 values, and the top-k weights if combine
  /// returns them.
  static std::size_t back_bytes(const Setup& setup);

  RowSource source(const std::byte* row) const;
  void set_source(std::byte* row, RowSource source) const;
  /// shape.top_k of each; choices are global experts, which the receiver maps to its own.
  std::int32_t* experts(std::byte* row) const;
  const std::int32_t* experts(const std::byte* row) const;
  float* weights(std::byte* row) const;
  const float* weights(const std::byte* row) const;

private:
  std::size_t payload_bytes_, source_at_, experts_at_, weights_at_, stride_bytes_;
};

/// Writes a token's row as its rank sends it.
void fill_row(const Setup& setup, const RowFields& fields, std::int32_t rank, std::int32_t token,
              std::byte* row);

/// What is wrong with a received row that should come from `source`; nothing if it is right to the
/// bit.
std::optional<std::string> wrong_row(const Setup& setup, const RowFields& fields, RowSource source,
                                     const std::byte* row);

/// What an expert reads of a received row: BF16.
std::vector<std::uint16_t> read_row(const Setup& setup, const std::byte* row);

/// A token's bias.
std::vector<std::uint16_t> bias_of(const Setup& setup, std::int32_t rank, std::int32_t token);

/// What is wrong with a combined token; nothing if it is right to the bit.
/// @param choices of the token, but for those of ranks that are masked
std::optional<std::string> wrong_combined(const Setup& setup, std::int32_t rank, std::int32_t token,
                                          const std::int32_t* choices, const std::uint16_t* values);

/// What is wrong with the combined top-k weights.
std::optional<std::string> wrong_weights(const Setup& setup, std::int32_t rank, std::int32_t token,
                                         const float* weights);

/// The routing as seen by a rank that has masked others: without their tokens, and without its own
/// tokens' experts on them.
Routing without_ranks(const Shape& shape, const Routing& routing, std::int32_t me,
                      const std::vector<std::int32_t>& masked);

} // namespace shmemctl::moe
