// The fields of a row that the host backend sends. Values, scales and metadata are contiguous, so
// that one put carries the whole row. src/model/moe/plan.h says which slot a token's row takes at
// its destination.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/instruments/bench/moe/backend.h"

namespace shmemctl::moe {

/// The offset of each field of a row.
class RowFields {
public:
  explicit RowFields(const Setup& setup);
  /// Distance between rows: a multiple of 16.
  std::size_t stride_bytes() const { return stride_bytes_; }
  /// Size of values and scales.
  std::size_t payload_bytes() const { return payload_bytes_; }

  /// Size of a returned row, a multiple of 16: BF16 values, and the top-k weights if combine
  /// returns them.
  static std::size_t back_bytes(const Setup& setup);

  RowSource source(const std::byte* row) const;
  void set_source(std::byte* row, RowSource source) const;
  /// shape.top_k experts, as global numbers, which the receiver maps to its local experts.
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

/// Compares a received row with the one that `source` must have sent, bit for bit. Returns what is
/// wrong; nothing if it is right.
std::optional<std::string> wrong_row(const Setup& setup, const RowFields& fields, RowSource source,
                                     const std::byte* row);

/// The values of a received row as an expert reads them: BF16.
std::vector<std::uint16_t> read_row(const Setup& setup, const std::byte* row);

/// A token's bias.
std::vector<std::uint16_t> bias_of(const Setup& setup, std::int32_t rank, std::int32_t token);

/// Compares a combined token with the expected one, bit for bit. Returns what is wrong; nothing if
/// it is right.
/// @param choices the token's choices, without those on masked ranks
std::optional<std::string> wrong_combined(const Setup& setup, std::int32_t rank, std::int32_t token,
                                          const std::int32_t* choices, const std::uint16_t* values);

/// What is wrong with the combined top-k weights; nothing if they are right.
std::optional<std::string> wrong_weights(const Setup& setup, std::int32_t rank, std::int32_t token,
                                         const float* weights);

/// The routing as a rank sees it that has masked others: without their tokens, and without the
/// choices of its own tokens that are on masked ranks.
Routing without_ranks(const Shape& shape, const Routing& routing, std::int32_t me,
                      const std::vector<std::int32_t>& masked);

} // namespace shmemctl::moe
