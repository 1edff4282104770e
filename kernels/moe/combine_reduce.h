// The shape of a combine reduction, the shared memory that it takes and its launch settings. For
// host and device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/moe/launch_config.h"
#include "src/base/host_device.h"

namespace shmemctl::moe {

/// What the reductions of all combines have in common.
struct ReduceShape {
  std::int32_t tokens, row_bytes;
  std::int32_t rows;         ///< most rows of a token; they are added in this order
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

/// Where a unit is: a chunk of a token's rows. The units of a warp are `workers` apart; a step
/// needs no division.
struct UnitCursor {
  std::int32_t token, begin_bytes;
};

/// The units of one warp.
class UnitsOfWarp {
public:
  /// @param worker of `workers` warps: which one it is
  SHMEMCTL_HOST_DEVICE constexpr UnitsOfWarp(std::int32_t tokens, std::int32_t row_bytes,
                                             std::int32_t chunk_bytes, std::int32_t worker,
                                             std::int32_t workers)
      : tokens_(tokens), row_bytes_(row_bytes), chunk_bytes_(chunk_bytes),
        whole_bytes_((row_bytes + chunk_bytes - 1) / chunk_bytes * chunk_bytes), first_(at(worker)),
        step_(at(workers)) {}

  SHMEMCTL_HOST_DEVICE constexpr UnitCursor first() const { return first_; }
  SHMEMCTL_HOST_DEVICE constexpr bool has(const UnitCursor& unit) const {
    return unit.token < tokens_;
  }
  SHMEMCTL_HOST_DEVICE constexpr UnitCursor next(UnitCursor unit) const {
    unit.token += step_.token;
    unit.begin_bytes += step_.begin_bytes;
    if (unit.begin_bytes >= whole_bytes_) {
      unit.begin_bytes -= whole_bytes_;
      ++unit.token;
    }
    return unit;
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t size_bytes(const UnitCursor& unit) const {
    const std::int32_t left = row_bytes_ - unit.begin_bytes;
    return left < chunk_bytes_ ? left : chunk_bytes_;
  }

private:
  SHMEMCTL_HOST_DEVICE constexpr UnitCursor at(std::int32_t unit) const {
    const std::int32_t chunks = whole_bytes_ / chunk_bytes_;
    return {unit / chunks, unit % chunks * chunk_bytes_};
  }

  std::int32_t tokens_, row_bytes_, chunk_bytes_;
  std::int32_t whole_bytes_; ///< whole bytes, also in a row whose last chunk is whole
  UnitCursor first_, step_;
};

/// The slots of one warp, each for a chunk of one row, in which the rows of its units follow each
/// other: a unit takes as many as it has rows, so that none stays empty for a rank that a token
/// does not go to. For host and device; no memory.
class RowRing {
public:
  static constexpr int max_slots = 32;

  SHMEMCTL_HOST_DEVICE constexpr explicit RowRing(int slots) : slots_(slots) {}

  /// Whether so many rows fit behind the rows that are loaded.
  SHMEMCTL_HOST_DEVICE constexpr bool has_room(int rows) const { return used_ + rows <= slots_; }
  /// Takes slots for the rows of the next unit. @return the first of them
  SHMEMCTL_HOST_DEVICE constexpr int take(int rows) {
    const int first = slot_after(head_, used_);
    used_ += rows;
    return first;
  }
  /// The first slot of the oldest unit.
  SHMEMCTL_HOST_DEVICE constexpr int first() const { return head_; }
  /// Frees the slots of the oldest unit.
  SHMEMCTL_HOST_DEVICE constexpr void release(int rows) {
    for (int i = 0; i < rows; ++i)
      parities_ ^= 1u << slot_after(head_, i);
    head_ = slot_after(head_, rows);
    used_ -= rows;
  }
  /// `count` slots on: at most as many as there are.
  SHMEMCTL_HOST_DEVICE constexpr int slot_after(int slot, int count) const {
    const int there = slot + count;
    return there < slots_ ? there : there - slots_;
  }
  /// Parity of the phase of the slot's barrier that completes when the row in it has arrived.
  SHMEMCTL_HOST_DEVICE constexpr std::uint32_t parity(int slot) const {
    return parities_ >> slot & 1;
  }

private:
  int slots_, head_ = 0, used_ = 0;
  std::uint32_t parities_ = 0;
};

/// Slots of a warp: for the rows of other ranks, and for those of this rank.
///
/// A row of this rank arrives sooner. If it shares the slots of the others, it waits in shared
/// memory until theirs have arrived, and fewer of theirs are under way.
struct RingSlots {
  std::int32_t others; ///< also for this rank's rows if `own` is 0
  std::int32_t own;

  SHMEMCTL_HOST_DEVICE constexpr std::int32_t all() const { return others + own; }
};
/// "", or why the slots of a warp do not do for tokens of so many ranks.
inline std::string refuse_slots(const RingSlots& slots, int n_ranks) {
  if (slots.others >= n_ranks - (slots.own > 0 ? 1 : 0) && slots.others <= RowRing::max_slots &&
      slots.own >= 0 && slots.own <= RowRing::max_slots)
    return "";
  return "a warp has slots for " + std::to_string(slots.others) + " rows of other ranks and " +
         std::to_string(slots.own) + " of this rank: a token may need " + std::to_string(n_ranks) +
         ", and each of the two has " + std::to_string(RowRing::max_slots) + " at most";
}
/// Shared memory of a block.
constexpr std::size_t ring_shared_bytes(const RingSlots& slots, int warps, int chunk_bytes) {
  return static_cast<std::size_t>(warps) * static_cast<std::size_t>(slots.all()) *
         (static_cast<std::size_t>(chunk_bytes) + sizeof(std::uint64_t));
}
/// As many slots as fit, at least enough for a token of all ranks; 0 if that does not fit.
constexpr RingSlots ring_slots(int n_ranks, int warps, int chunk_bytes, int own) {
  constexpr int shared = static_cast<int>(max_shared_bytes) - own_shared_bytes;
  const int fit = shared / (warps * (chunk_bytes + static_cast<int>(sizeof(std::uint64_t)))) - own;
  const int others = fit > RowRing::max_slots ? RowRing::max_slots : fit;
  return others >= n_ranks - (own > 0 ? 1 : 0) && others > 0 ? RingSlots{others, own}
                                                             : RingSlots{0, 0};
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
