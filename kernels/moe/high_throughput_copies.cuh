// The kernels of dispatch and combine by copy engines.
#pragma once

#include "kernels/moe/high_throughput_combine.cuh"
#include "kernels/moe/high_throughput_copies.h"
#include "kernels/moe/token_metadata.cuh"

namespace shmemctl::moe {

struct CopyBegin {
  CallFlags* flags;
  std::uint64_t* number;
  std::int32_t n_ranks;
};
/// Launched with one block. The end of the kernel orders the number before the copies, and all that
/// this rank has acquired here.
__global__ void begin_copies(const __grid_constant__ DeviceJob job,
                             const __grid_constant__ CopyBegin all) {
  const Call call(job, all.flags, all.n_ranks);
  call.announce();
  const bool all_arrived = call.wait_for_all();
  if (threadIdx.x == 0)
    device::store_relaxed(all.number,
                          all_arrived ? call.epoch() : device::load_relaxed(&all.flags->failure));
}

/// Called by one thread: waits until the piece has arrived. False: a rank timed out, or `source`
/// has failed. Not inlined: called once per piece, and the caller needs its registers.
inline __device__ __noinline__ bool wait_for_piece(const DeviceJob& job, CallFlags* flags,
                                                   const std::uint64_t* word, std::uint64_t number,
                                                   std::int32_t source) {
  bool ok = true;
  const std::uint64_t seen = device::wait_at_least(job, word, number, source, ok);
  if (!ok)
    record_failure(job, flags, number, source);
  else if (has_failed(seen))
    adopt_failure(job, flags, seen, source);
  return ok && !has_failed(seen);
}

/// The rows of a token: this rank's own where the experts have written it, those of other ranks
/// where their copies arrive.
class CopiedRows {
public:
  static constexpr bool weighted = false;
  /// Called by a warp: lane r serves rank r.
  /// @param number of the call
  __device__ CopiedRows(const DeviceJob& job, const CopiedCombine& all, std::uint64_t number)
      : job_(job), flags_(all.combine.memory.flags), slots_(all.combine.plan.slots),
        pieces_(CopyPieces::of(all.combine.shape.max_tokens, all.pieces)), number_(number),
        rank_(static_cast<std::int32_t>(threadIdx.x % 32)), n_ranks_(all.combine.shape.n_ranks),
        row_bytes_(all.combine.shape.hidden * 2) {
    if (rank_ >= n_ranks_)
      return;
    if (rank_ == job.pe) {
      rows_ = all.combine.memory.outputs +
              static_cast<std::int64_t>(all.combine.plan.bases[rank_]) * row_bytes_;
      return;
    }
    rows_ = all.copied.rows +
            static_cast<std::int64_t>(rank_) * all.combine.shape.max_tokens * row_bytes_;
    words_ = all.copied.arrived + static_cast<std::int64_t>(rank_) * max_pieces;
  }
  __device__ FoundRow find(std::int32_t token, int rank) const {
    FoundRow found;
    if (rank >= n_ranks_)
      return found;
    const std::int32_t slot = slots_[static_cast<std::int64_t>(token) * n_ranks_ + rank];
    found.at = slot < 0 ? nullptr : rows_ + static_cast<std::int64_t>(slot) * row_bytes_;
    found.rank = rank;
    piece_ = pieces_.piece_of(slot < 0 ? 0 : slot);
    return found;
  }
  /// Called by the lane that is about to load the row found last. False: it does not come.
  __device__ bool await() const {
    if (words_ == nullptr || piece_ < arrived_) // a rank's pieces arrive in order
      return true;
    if (!ok_ || !wait_for_piece(job_, flags_, words_ + piece_, number_, rank_)) {
      ok_ = false;
      return false;
    }
    arrived_ = piece_ + 1;
    // The acquired piece is ordered before the bulk loads that this lane begins.
    device::fence_global_for_bulk();
    return true;
  }
  /// Whether all rows of this lane have come.
  __device__ bool ok() const { return ok_; }

private:
  const DeviceJob& job_;
  CallFlags* flags_;
  const std::int32_t* slots_;
  CopyPieces pieces_;
  std::uint64_t number_;
  std::int32_t rank_, n_ranks_, row_bytes_;
  const std::byte* rows_ = nullptr;
  const std::uint64_t* words_ = nullptr; ///< nullptr: the rows have arrived
  /// Position in the row found last, and how many pieces before it have arrived.
  mutable std::int32_t piece_ = 0, arrived_ = 0;
  mutable bool ok_ = true;
};

template <int ranks_limit>
__global__ void __launch_bounds__(reduce_threads, 1)
    combine_copied(const __grid_constant__ DeviceJob job,
                   const __grid_constant__ CopiedCombine all) {
  extern __shared__ __align__(128) std::byte shared[];
  const Call call(job, all.combine.memory.flags, all.combine.shape.n_ranks);
  const std::uint64_t number = device::load_relaxed(all.copied.number);
  const ReduceShape shape = reduce_shape(all.combine);
  const CopiedRows rows(job, all, number);
  RingReducer<CopiedRows, ranks_limit> reducer(shape, all.combine.slots, job.pe, rows, shared);
  reducer.prepare();
  bool ok = !has_failed(number);
  if (ok) {
    reducer.run();
    ok = rows.ok();
  }
  call.finish_alone(device::Block::all(ok));
}

/// Writes the metadata of this rank's tokens to the ranks that they go to, and waits for the rows
/// of all others.
__global__ void copied_metadata(const __grid_constant__ DeviceJob job,
                                const __grid_constant__ CopiedDispatch all) {
  const DispatchArguments& given = all.dispatch;
  const Shape& shape = given.shape;
  const Call call(job, given.memory.flags, shape.n_ranks);
  const std::uint64_t number = device::load_relaxed(all.copied.number);
  // A notify between the two halves may have failed.
  bool ok = !has_failed(number) && !has_failed(call.epoch());
  if (ok) {
    const MetadataLayout layout = given.record();
    const Scales scales = given.format == Format::fp8 ? Scales::float32 : Scales::none;
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    const auto warps = static_cast<std::int32_t>(gridDim.x * (blockDim.x / 32));
    for (auto token = static_cast<std::int32_t>(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32);
         token < given.tokens; token += warps) {
      const std::int64_t index = token;
      const TokenRow row{nullptr,
                         given.scales + index * shape.scales_per_row(),
                         given.experts + index * shape.top_k,
                         reinterpret_cast<const std::uint32_t*>(given.weights) +
                             index * shape.top_k,
                         job.pe,
                         token};
      for (std::int32_t i = 0; i < shape.n_ranks; ++i) {
        const std::int32_t rank = (job.pe + 1 + i) % shape.n_ranks;
        const std::int32_t slot = given.plan.slots[index * shape.n_ranks + rank];
        if (slot < 0)
          continue;
        const std::int64_t at = static_cast<std::int64_t>(given.plan.bases[rank]) + slot;
        auto* const record = reinterpret_cast<std::uint32_t*>(
            device::pointer_to(job, given.memory.records, rank) + at * layout.bytes());
        for (std::int32_t word = lane; word < layout.words(); word += 32)
          record[word] = record_word(shape, scales, layout, row, rank, word);
      }
    }
    // One block waits; the others leave their multiprocessors. finish() of this rank comes later
    // for it, but the copies of other ranks do not wait for that.
    if (blockIdx.x == 0)
      for (auto source = static_cast<std::int32_t>(threadIdx.x); source < shape.n_ranks;
           source += static_cast<std::int32_t>(blockDim.x))
        if (source != job.pe)
          ok = wait_for_piece(job, given.memory.flags,
                              all.copied.arrived + static_cast<std::int64_t>(source) * max_pieces,
                              number, source) &&
               ok;
  }
  call.finish(device::Block::all(ok));
}

} // namespace shmemctl::moe
