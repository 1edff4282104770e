// The reduction of combine with rows that follow each other in shared memory, without gaps for
// ranks that a token does not go to, and with slots of their own for the rows of this rank. What is
// fetched from other ranks takes several times longer than what this rank has, and its rate is
// the number of bytes under way by that time: all the shared memory that other rows leave is
// theirs.
#pragma once

#include "kernels/moe/combine_reduce.cuh"

namespace shmemctl::moe {

/// Called by the lane that is about to load the row found last: waits until it is there, if `Rows`
/// has rows that come one by one (`await()`). False: it does not come.
template <class Rows>
__device__ inline auto is_there(const Rows& rows, int) -> decltype(rows.await()) {
  return rows.await();
}
template <class Rows>
__device__ inline bool is_there(const Rows&, long) {
  return true;
}

/// The rows of some ranks, as they come into the slots of one warp. Called by all lanes; lane r
/// serves rank r.
///
/// All of it is inlined: as calls its state would be in local memory, which each fence evicts from
/// L1.
template <class Rows>
class RowFeed {
public:
  /// @param ranks  a bit for each rank whose rows come here
  /// @param slots  0 if there are none
  /// @param memory of the slots
  __device__ __forceinline__ RowFeed(UnitCursor first, std::int32_t chunk_bytes, const Rows& rows,
                                     std::uint32_t ranks, int slots, std::byte* memory,
                                     device::ArrivalBarrier* barriers)
      : rows_(rows), lane_(static_cast<int>(threadIdx.x % 32)), ranks_(ranks), ring_(slots),
        memory_(memory), barriers_(barriers), chunk_bytes_(chunk_bytes), unit_(first) {
    if (lane_ == 0)
      for (int i = 0; i < slots; ++i)
        barriers_[i].init();
  }

  /// Finds the rows of the unit that is loaded next, well before they are loaded.
  __device__ __forceinline__ void find(const UnitsOfWarp& units) {
    at_ = units.has(unit_) && (ranks_ >> lane_ & 1) != 0 ? rows_.find(unit_.token, lane_).at
                                                         : nullptr;
    found_ = __ballot_sync(0xffffffffu, at_ != nullptr);
  }
  /// Loads as many units as the slots hold, at most 32, whose masks the lanes keep.
  /// @param reduced units so far: the next one is loaded on return
  __device__ __forceinline__ void fill(const UnitsOfWarp& units, std::int32_t reduced) {
    if (ranks_ == 0) // no slots: every mask is 0
      return;
    while (units.has(unit_) && loaded_ - reduced < 32 && ring_.has_room(__popc(found_))) {
      load(units.size_bytes(unit_));
      unit_ = units.next(unit_);
      find(units);
    }
  }

  /// The ranks whose rows the warp's i-th unit has here.
  __device__ std::uint32_t mask_of(std::int32_t i) const {
    return __shfl_sync(0xffffffffu, mask_, i % 32);
  }
  /// Waits for the rows of the oldest unit. Every lane does: it then sees what the copy engine
  /// wrote.
  __device__ __forceinline__ void wait(std::uint32_t mask) const {
    int slot = ring_.first();
    for (int i = __popc(mask); i > 0; --i) {
      barriers_[slot].wait(ring_.parity(slot));
      slot = ring_.slot_after(slot, 1);
    }
  }
  /// Its slots may be filled again: all lanes have read them, and fenced.
  __device__ __forceinline__ void release(std::uint32_t mask) { ring_.release(__popc(mask)); }

  __device__ int first_slot() const { return ring_.first(); }
  __device__ int next_slot(int slot) const { return ring_.slot_after(slot, 1); }
  __device__ std::uint32_t address_of(int slot) const {
    return device::shared_address(memory_) + static_cast<std::uint32_t>(slot * chunk_bytes_);
  }

private:
  __device__ __forceinline__ void load(std::int32_t size_bytes) {
    // A row that does not come is left out; the lane that waited for it fails the call.
    const bool loads = at_ != nullptr && is_there(rows_, 0);
    const std::uint32_t loaded = __ballot_sync(0xffffffffu, loads);
    const int first = ring_.take(__popc(loaded));
    if (loads) {
      const int slot = ring_.slot_after(first, __popc(loaded & ((1u << lane_) - 1)));
      // The lane that loads expects: no other one has to be waited for.
      barriers_[slot].expect(static_cast<std::uint32_t>(size_bytes));
      device::bulk_load(memory_ + static_cast<std::ptrdiff_t>(slot) * chunk_bytes_,
                        at_ + unit_.begin_bytes, static_cast<std::uint32_t>(size_bytes),
                        barriers_[slot]);
    }
    if (lane_ == loaded_ % 32)
      mask_ = loaded;
    ++loaded_;
  }

  const Rows& rows_;
  int lane_;
  std::uint32_t ranks_;
  RowRing ring_;
  std::byte* memory_;
  device::ArrivalBarrier* barriers_;
  std::int32_t chunk_bytes_;
  UnitCursor unit_;               ///< the unit that is loaded next
  const std::byte* at_ = nullptr; ///< this lane's row of the unit; nullptr: there is none
  std::uint32_t found_ = 0;       ///< the ranks that have a row of the unit here
  std::uint32_t mask_ = 0;        ///< lane i % 32: the ranks whose rows of unit i are here
  std::int32_t loaded_ = 0;       ///< units
};

/// The pipeline of one warp over the chunks of its tokens, as CombineReducer: the same rows, added
/// in the same order. Not for weighted rows.
template <class Rows, int max_rows>
class RingReducer {
  static_assert(!Rows::weighted, "weights have no place here");

public:
  __device__ RingReducer(const ReduceShape& shape, const RingSlots& slots, std::int32_t me,
                         const Rows& rows, std::byte* shared)
      : shape_(shape), units_(shape.tokens, shape.row_bytes, shape.chunk_bytes,
                              static_cast<std::int32_t>(threadIdx.x / 32 * gridDim.x + blockIdx.x),
                              static_cast<std::int32_t>(blockDim.x / 32 * gridDim.x)),
        lane_(static_cast<int>(threadIdx.x % 32)),
        others_(units_.first(), shape.chunk_bytes, rows, slots.own > 0 ? ~(1u << me) : ~0u,
                slots.others, memory_of(shape, slots, shared), barriers_of(shape, slots, shared)),
        own_(units_.first(), shape.chunk_bytes, rows, slots.own > 0 ? 1u << me : 0, slots.own,
             memory_of(shape, slots, shared) +
                 static_cast<std::ptrdiff_t>(slots.others) * shape.chunk_bytes,
             barriers_of(shape, slots, shared) + slots.others) {
    if (lane_ == 0)
      device::ArrivalBarrier::fence_init();
    __syncwarp();
  }

  /// The part that needs no rows of other ranks.
  __device__ __forceinline__ void prepare() {
    others_.find(units_);
    own_.find(units_);
  }
  /// Called when the rows are complete and this thread has acquired their flags.
  __device__ __forceinline__ void run() {
    // Proxy fence: the acquired stores of other ranks are ordered before the bulk loads of their
    // rows.
    device::fence_global_for_bulk();
    std::int32_t i = 0;
    for (UnitCursor unit = units_.first(); units_.has(unit); unit = units_.next(unit), ++i) {
      others_.fill(units_, i);
      own_.fill(units_, i);
      const std::uint32_t others = others_.mask_of(i), own = own_.mask_of(i);
      own_.wait(own);
      others_.wait(others);
      reduce(unit, others, own);
      // This lane's reads of the slots come before the copy engine writes there again.
      device::fence_shared_for_bulk();
      __syncwarp();
      others_.release(others);
      own_.release(own);
    }
  }

private:
  /// Groups of 16 bytes of a row that a lane holds in registers at once.
  static constexpr int at_once = 8 / max_rows;

  static __device__ std::byte* memory_of(const ReduceShape& shape, const RingSlots& slots,
                                         std::byte* shared) {
    return shared + static_cast<std::ptrdiff_t>(threadIdx.x / 32) * slots.all() * shape.chunk_bytes;
  }
  static __device__ device::ArrivalBarrier* barriers_of(const ReduceShape& shape,
                                                        const RingSlots& slots, std::byte* shared) {
    const auto warps = static_cast<std::ptrdiff_t>(blockDim.x / 32);
    return reinterpret_cast<device::ArrivalBarrier*>(shared +
                                                     warps * slots.all() * shape.chunk_bytes) +
           static_cast<std::ptrdiff_t>(threadIdx.x / 32) * slots.all();
  }
  __device__ __forceinline__ void reduce(const UnitCursor& unit, std::uint32_t others,
                                         std::uint32_t own) const {
    const std::int64_t begin =
        (static_cast<std::int64_t>(unit.token) * shape_.row_bytes + unit.begin_bytes) / 16;
    const std::int32_t pieces = units_.size_bytes(unit) / 16;
    std::int32_t at = lane_;
    for (; at + 32 * (at_once - 1) < pieces; at += 32 * at_once)
      add_up<at_once>(others, own, begin, at);
    for (; at < pieces; at += 32)
      add_up<1>(others, own, begin, at);
  }
  /// 16 bytes of each row at `at`, at + 32, ..., `count` times: all loads, then all sums, in the
  /// order of ranks.
  template <int count>
  __device__ __forceinline__ void add_up(std::uint32_t others, std::uint32_t own,
                                         std::int64_t begin, std::int32_t at) const {
    uint4 values[count][max_rows];
    int slot = others_.first_slot();
#pragma unroll
    for (int row = 0; row < max_rows; ++row) {
      std::uint32_t address = 0;
      if ((others >> row & 1) != 0) {
        address = others_.address_of(slot);
        slot = others_.next_slot(slot);
      } else if ((own >> row & 1) != 0) {
        address = own_.address_of(own_.first_slot());
      } else {
        continue;
      }
#pragma unroll
      for (int i = 0; i < count; ++i)
        values[i][row] = load_shared(address + static_cast<std::uint32_t>((at + i * 32) * 16));
    }
#pragma unroll
    for (int i = 0; i < count; ++i) {
      EightFloats total;
      total.set(0);
      if (shape_.bias != nullptr)
        total.add(__ldg(reinterpret_cast<const uint4*>(shape_.bias) + begin + at + i * 32));
#pragma unroll
      for (int row = 0; row < max_rows; ++row)
        if (((others | own) >> row & 1) != 0)
          total.add(values[i][row]);
      reinterpret_cast<uint4*>(shape_.results)[begin + at + i * 32] = total.rounded();
    }
  }

  const ReduceShape& shape_;
  UnitsOfWarp units_;
  int lane_;
  RowFeed<Rows> others_, own_;
};

} // namespace shmemctl::moe
