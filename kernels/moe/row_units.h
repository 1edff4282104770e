// A row of low latency as units that carry data and flag together: the arithmetic. For host and
// device.
//
// A unit is an aligned 64-bit word: 32 bits of the row, and the number of the dispatch
// (count_word() of both). One store writes it, so whoever sees the number sees the data: neither a
// fence nor a release nor a flag for the row is needed, and nothing waits until earlier stores have
// arrived. It doubles the bytes on the link, which is worth it for few tokens only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/moe/token_metadata.h"
#include "src/model/moe/plan.h"

namespace shmemctl::moe {

/// Most tokens of a rank that are sent by units.
inline constexpr std::int32_t max_tokens_by_units = 16;

/// The units of some groups of 16 bytes, four each. They lie in pairs of 16 bytes: first the first
/// pair of every group, then the second pair of every group, so that threads with neighbouring
/// groups store and load neighbouring 16 bytes.
struct PairedUnits {
  std::int32_t groups;

  SHMEMCTL_HOST_DEVICE constexpr std::int32_t units() const { return 4 * groups; }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t row_bytes() const { return 8 * units(); }
  /// The first unit of one of the two pairs of a group; aligned to a pair.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t pair(std::int32_t group, std::int32_t which) const {
    return 2 * (which * groups + group);
  }
};

/// A dispatched row: groups of its values, then those of its record.
struct UnitLayout : PairedUnits {
  std::int32_t value_groups, record_groups;

  SHMEMCTL_HOST_DEVICE constexpr UnitLayout(const Shape& shape, Scales scales)
      : PairedUnits{(shape.value_bytes(format_of(scales)) + MetadataLayout(shape, scales).bytes()) /
                    16},
        value_groups(shape.value_bytes(format_of(scales)) / 16),
        record_groups(MetadataLayout(shape, scales).bytes() / 16) {}

  /// The unit of a 32-bit word of the record.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t unit_of_record(std::int32_t word) const {
    return pair(value_groups + word / 4, word % 4 / 2) + word % 2;
  }
  /// Where the row of a source's `slot` begins in the units of a rank, in bytes.
  SHMEMCTL_HOST_DEVICE constexpr std::int64_t offset(const Shape& shape, std::int32_t buffer,
                                                     std::int32_t source, std::int32_t slot) const {
    return (std::int64_t{buffer} * shape.max_rows() + fixed_slot(shape, source, slot)) *
           row_bytes();
  }
  /// Size of the units of both buffers.
  SHMEMCTL_HOST_DEVICE constexpr std::int64_t all_bytes(const Shape& shape) const {
    return offset(shape, 2, 0, 0);
  }
};

/// BF16 rows that come back to the token's source: one for each choice (weighted), or one from each
/// rank.
struct ReturnLayout : PairedUnits {
  std::int32_t rows; ///< rows of one token

  SHMEMCTL_HOST_DEVICE constexpr ReturnLayout(const Shape& shape, bool weighted)
      : PairedUnits{shape.hidden / 8}, rows(weighted ? shape.top_k : shape.n_ranks) {}

  /// The unit's offset in bytes.
  SHMEMCTL_HOST_DEVICE constexpr std::int64_t offset(std::int32_t token, std::int32_t row) const {
    return (std::int64_t{token} * rows + row) * row_bytes();
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int64_t all_bytes(const Shape& shape) const {
    return offset(shape.max_tokens, 0);
  }
};

/// Rows that the receiving blocks of such a dispatch look after in turn: each slot of each source,
/// the first slots of all sources first.
struct ExpectedSlot {
  std::int32_t source, slot;
};
SHMEMCTL_HOST_DEVICE constexpr std::int32_t expected_slots(const Shape& shape) {
  return shape.n_ranks * shape.max_tokens;
}
SHMEMCTL_HOST_DEVICE constexpr ExpectedSlot expected_slot(const Shape& shape, std::int32_t item) {
  return {item % shape.n_ranks, item / shape.n_ranks};
}
/// The slot whose receiver counts the wait for the source, of `rows` rows; -1 rows: it is masked.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t slot_that_counts(std::int32_t rows) {
  return rows > 0 ? rows - 1 : 0;
}

/// The rows that the sending blocks of such a combine look after in turn: each choice (or the one
/// sum) of each slot, the first slots of all sources first.
struct ReturnedRow {
  std::int32_t source, slot, choice;
};
SHMEMCTL_HOST_DEVICE constexpr std::int32_t returned_rows(const Shape& shape, bool weighted) {
  return expected_slots(shape) * (weighted ? shape.top_k : 1);
}
SHMEMCTL_HOST_DEVICE constexpr ReturnedRow returned_row(const Shape& shape, bool weighted,
                                                        std::int32_t item) {
  const std::int32_t each = weighted ? shape.top_k : 1;
  const ExpectedSlot at = expected_slot(shape, item / each);
  return {at.source, at.slot, item % each};
}

} // namespace shmemctl::moe
