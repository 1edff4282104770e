// The reduction of combine with rows that follow each other in shared memory, without gaps for
// ranks that a token does not go to, and with slots of their own for the rows of this rank. What is
// fetched from other ranks takes several times longer than what this rank has, and its rate is
// the number of bytes under way by that time: all the shared memory that other rows leave is
// theirs.
#pragma once

#include "kernels/moe/combine_reduce.cuh"

namespace shmemctl::moe {

/// The rows of some ranks, as they come into the slots of one warp. Called by all lanes; lane r
/// serves rank r.
template <class Rows>
class RowFeed {
public:
  /// @param ranks   a bit for each rank whose rows come here
  /// @param slots   0 if there are none
  /// @param memory  of the slots
  __device__ RowFeed(const Rows& rows, std::uint32_t ranks, int slots, std::byte* memory,
                     device::ArrivalBarrier* barriers, std::int32_t chunk_bytes)
      : rows_(rows), lane_(static_cast<int>(threadIdx.x % 32)), ranks_(ranks), ring_(slots),
        memory_(memory), barriers_(barriers), chunk_bytes_(chunk_bytes) {
    if (lane_ == 0)
      for (int i = 0; i < slots; ++i)
        barriers_[i].init();
  }
  /// Units of this warp whose loads have begun.
  __device__ std::int64_t loaded() const { return loaded_; }

  /// Finds the rows of the unit that is loaded next.
  __device__ void find(std::int32_t token) {
    row_ = rows_.find(token, lane_);
    has_row_ = row_.at != nullptr && (ranks_ >> lane_ & 1) != 0;
    found_ = __ballot_sync(0xffffffffu, has_row_);
  }
  /// Whether the slots hold the unit that was found, besides those that are there: at most 32,
  /// whose masks the lanes keep.
  __device__ bool has_room(std::int64_t reduced) const {
    return loaded_ - reduced < 32 && ring_.has_room(__popc(found_));
  }
  __device__ void load(std::int32_t begin_bytes, std::int32_t size_bytes) {
    const int first = ring_.take(__popc(found_));
    if (has_row_) {
      const int slot = ring_.slot_after(first, __popc(found_ & ((1u << lane_) - 1)));
      // The lane that loads expects: no other one has to be waited for.
      barriers_[slot].expect(static_cast<std::uint32_t>(size_bytes));
      device::bulk_load(memory_ + static_cast<std::ptrdiff_t>(slot) * chunk_bytes_,
                        row_.at + begin_bytes, static_cast<std::uint32_t>(size_bytes),
                        barriers_[slot]);
    }
    if (lane_ == static_cast<int>(loaded_ % 32))
      mask_ = found_;
    ++loaded_;
  }

  /// The ranks whose rows the warp's i-th unit has here.
  __device__ std::uint32_t mask_of(std::int64_t i) const {
    return __shfl_sync(0xffffffffu, mask_, static_cast<int>(i % 32));
  }
  /// Waits for the rows of the oldest unit. Every lane does: it then sees what the copy engine
  /// wrote.
  __device__ void wait(std::uint32_t mask) const {
    int slot = ring_.first();
    for (int i = __popc(mask); i > 0; --i) {
      barriers_[slot].wait(ring_.parity(slot));
      slot = ring_.slot_after(slot, 1);
    }
  }
  /// Its slots may be filled again: all lanes have read them, and fenced.
  __device__ void release(std::uint32_t mask) { ring_.release(__popc(mask)); }

  __device__ int first_slot() const { return ring_.first(); }
  __device__ int next_slot(int slot) const { return ring_.slot_after(slot, 1); }
  __device__ std::uint32_t address_of(int slot) const {
    return device::shared_address(memory_) + static_cast<std::uint32_t>(slot * chunk_bytes_);
  }

private:
  const Rows& rows_;
  int lane_;
  std::uint32_t ranks_;
  RowRing ring_;
  std::byte* memory_;
  device::ArrivalBarrier* barriers_;
  std::int32_t chunk_bytes_;
  FoundRow row_; ///< of the unit that is loaded next
  bool has_row_ = false;
  std::uint32_t found_ = 0; ///< the ranks that have a row of it here
  std::uint32_t mask_ = 0;  ///< lane i % 32: of unit i
  std::int64_t loaded_ = 0;
};

/// The pipeline of one warp over the chunks of its tokens, as CombineReducer: each rank's rows at
/// the same addresses, added in the same order. Not for weighted rows.
template <class Rows, int max_rows>
class RingReducer {
  static_assert(!Rows::weighted, "weights have no place here");

public:
  __device__ RingReducer(const ReduceShape& shape, const RingSlots& slots, std::int32_t me,
                         const Rows& rows, std::byte* shared)
      : shape_(shape), chunks_((shape.row_bytes + shape.chunk_bytes - 1) / shape.chunk_bytes),
        units_(static_cast<std::int64_t>(shape.tokens) * chunks_),
        workers_(static_cast<std::int64_t>(gridDim.x) * (blockDim.x / 32)),
        worker_(static_cast<std::int64_t>(threadIdx.x / 32) * gridDim.x + blockIdx.x),
        lane_(static_cast<int>(threadIdx.x % 32)),
        others_(rows, slots.own > 0 ? ~(1u << me) : ~0u, slots.others,
                memory_of(shape, slots, shared), barriers_of(shape, slots, shared),
                shape.chunk_bytes),
        own_(rows, slots.own > 0 ? 1u << me : 0, slots.own,
             memory_of(shape, slots, shared) +
                 static_cast<std::ptrdiff_t>(slots.others) * shape.chunk_bytes,
             barriers_of(shape, slots, shared) + slots.others, shape.chunk_bytes) {
    if (lane_ == 0)
      device::ArrivalBarrier::fence_init();
    __syncwarp();
  }

  /// The part that needs no rows of other ranks.
  __device__ void prepare() {
    find(others_);
    find(own_);
  }
  /// Called when the rows are complete and this thread has acquired their flags.
  __device__ void run() {
    // Proxy fence: the acquired stores of other ranks are ordered before the bulk loads of their
    // rows.
    device::fence_global_for_bulk();
    std::int64_t i = 0;
    for (std::int64_t unit = worker_; unit < units_; ++i, unit += workers_) {
      fill(others_, i);
      fill(own_, i);
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
  static constexpr int at_once = max_rows <= 4 ? 4 : 2;

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
  __device__ std::int64_t next_unit(const RowFeed<Rows>& feed) const {
    return worker_ + feed.loaded() * workers_;
  }
  /// Finds the rows of the feed's next unit, well before they are loaded.
  __device__ void find(RowFeed<Rows>& feed) const {
    if (const std::int64_t unit = next_unit(feed); unit < units_)
      feed.find(static_cast<std::int32_t>(unit / chunks_));
  }
  __device__ std::int32_t begin_of(std::int64_t unit) const {
    return static_cast<std::int32_t>(unit % chunks_) * shape_.chunk_bytes;
  }
  __device__ std::int32_t size_of(std::int64_t unit) const {
    const std::int32_t left = shape_.row_bytes - begin_of(unit);
    return left < shape_.chunk_bytes ? left : shape_.chunk_bytes;
  }
  /// Loads as many units as the feed's slots hold; unit `i` is reduced next, and is among them.
  __device__ void fill(RowFeed<Rows>& feed, std::int64_t i) const {
    for (std::int64_t unit = next_unit(feed); unit < units_ && feed.has_room(i);
         unit = next_unit(feed)) {
      feed.load(begin_of(unit), size_of(unit));
      find(feed);
    }
  }
  __device__ void reduce(std::int64_t unit, std::uint32_t others, std::uint32_t own) const {
    const std::int64_t token = unit / chunks_;
    const std::int64_t begin = (token * shape_.row_bytes + begin_of(unit)) / 16;
    const std::int32_t pieces = size_of(unit) / 16;
    std::int32_t at = lane_;
    for (; at + 32 * (at_once - 1) < pieces; at += 32 * at_once)
      add_up<at_once>(others, own, begin, at);
    for (; at < pieces; at += 32)
      add_up<1>(others, own, begin, at);
  }
  /// 16 bytes of each row at `at`, at + 32, ..., `count` times: all loads, then all sums, in the
  /// order of ranks.
  template <int count>
  __device__ void add_up(std::uint32_t others, std::uint32_t own, std::int64_t begin,
                         std::int32_t at) const {
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
  std::int32_t chunks_;
  std::int64_t units_, workers_, worker_;
  int lane_;
  RowFeed<Rows> others_, own_;
};

} // namespace shmemctl::moe
