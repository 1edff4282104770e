// Collectives of a team. All members make the same calls in the same order, one collective of a
// team at a time, with the same sizes (except collect and alltoallv). `dest` and `source` are
// symmetric heap addresses, the same only where stated ("in place"). On return this member's dest
// is complete, its source may be overwritten, and all threads of the scope see the dest. A call
// sends the source data that this scope, or an earlier kernel, has written before it. No barrier is
// needed before a call: a PE's dest is written only after that PE has entered the call.
//
// Calls return false, and the report says why: a timeout, a failed network, a team of more than
// DeviceTeamFlags::max_members or without this PE, a bitwise reduction of floating point.
//
// Calls with a scope (Thread, Warp, Block): one scope of each PE makes the call. Calls with _grid:
// all blocks of a launch make the call; it is complete at the kernel's end, or in each block after
// a grid_sync(). During the call, only the block with the highest index, or the last one to finish,
// waits for other blocks, so the grid may have any size. Two such calls in one launch need a
// grid_sync() between them, for which all blocks must be resident.
#pragma once

#include "kernels/device/alltoallv.cuh"
#include "kernels/device/collectives_network.cuh"

namespace shmemctl::device {

namespace detail {

/// Whether this PE can make a collective of the team. If not, the report says why.
__device__ inline bool can_collect(const DeviceJob& job, int team_number, const TeamView& team) {
  if (!is_member(job, team_number, team))
    return false;
  if (team.n <= DeviceTeamFlags::max_members)
    return true;
  report_wait(job, -1, static_cast<std::uint64_t>(team_number), static_cast<std::uint64_t>(team.n),
              nullptr, WaitKind::team_size);
  return false;
}
/// Bitwise operations are not defined for floating point.
template <class T>
__device__ inline bool can_reduce(const DeviceJob& job, int team_number, ReduceOp op) {
  if (std::is_integral<T>::value || !is_bitwise(op))
    return true;
  report_wait(job, -1, static_cast<std::uint64_t>(team_number), 0, nullptr, WaitKind::no_reduction);
  return false;
}
__device__ inline Share share_of_grid() {
  return {Grid::rank(), Grid::size()};
}
__device__ inline bool fits_words(const DeviceJob& job, const TeamView& team,
                                  std::size_t size_bytes, int senders) {
#ifdef SHMEMCTL_DEVICE_NO_SMALL
  return false; // lets tests force the other algorithm at all sizes
#else
  return plan::is_small(size_bytes, senders) && unmapped_member(job, team) < 0;
#endif
}
/// Whether `size_bytes` for each other member are so little for the threads of the scope that words
/// that carry the epoch are faster than stores of 16 bytes and flags. Always true for blocks: they
/// may have other numbers of threads on other members, and all must choose the same algorithm.
template <class Scope>
__device__ inline bool are_few_words(const TeamView& team, std::size_t size_bytes) {
  if constexpr (std::is_same<Scope, Block>::value)
    return true;
  else
    return plan::pairs_of(size_bytes) * static_cast<std::uint64_t>(team.n - 1) <=
           plan::few_pairs_per_thread * static_cast<std::uint64_t>(Scope::size());
}

template <class Scope>
__device__ inline bool gather(const DeviceJob& job, int team_number, void* dest, const void* source,
                              std::size_t size_bytes, std::size_t stride_bytes, Share share) {
  const TeamView team = team_view(job, team_number);
  if (!can_collect(job, team_number, team))
    return false;
  if (size_bytes == 0)
    return true;
  if (!are_few_words<Scope>(team, size_bytes) || !fits_words(job, team, size_bytes, team.n))
    return gather_large<Scope>(job, team, dest, source, size_bytes, stride_bytes, share);
  return share.part != 0 || gather_small<Scope>(job, team, dest, source, size_bytes, stride_bytes);
}

template <class Scope>
__device__ inline bool broadcast(const DeviceJob& job, int team_number, void* dest,
                                 const void* source, std::size_t size_bytes, int root,
                                 Share share) {
  const TeamView team = team_view(job, team_number);
  if (!can_collect(job, team_number, team))
    return false;
  if (size_bytes == 0)
    return true;
  if (!are_few_words<Scope>(team, size_bytes) || !fits_words(job, team, size_bytes, 1))
    return broadcast_large<Scope>(job, team, dest, source, size_bytes, root, share);
  return share.part != 0 || broadcast_small<Scope>(job, team, dest, source, size_bytes, root);
}

template <class Scope, class T>
__device__ inline bool reduce(const DeviceJob& job, int team_number, T* dest, const T* source,
                              std::size_t count, ReduceOp op, bool scatter, Share share) {
  const TeamView team = team_view(job, team_number);
  if (!can_collect(job, team_number, team) || !can_reduce<T>(job, team_number, op))
    return false;
  if (count == 0)
    return true;
  if (unmapped_member(job, team) >= 0)
    return reduce_over_network<Scope, T>(job, team, dest, source, count, op, scatter, share);
  const std::size_t size_bytes = count * sizeof(T);
  if (!fits_words(job, team, size_bytes, team.n))
    return reduce_large<Scope, T>(job, team, dest, source, count, op, scatter, share);
  return share.part != 0 ||
         reduce_small<Scope, T>(job, team, dest, source, size_bytes, scatter ? size_bytes : 0, op);
}

} // namespace detail

/// Broadcast: dest of all members = source of member `root`. In place allowed.
template <class Scope>
__device__ inline bool broadcast(const DeviceJob& job, int team, void* dest, const void* source,
                                 std::size_t size_bytes, int root) {
  return detail::broadcast<Scope>(job, team, dest, source, size_bytes, root, {0, 1});
}
__device__ inline bool broadcast_grid(const DeviceJob& job, int team, void* dest,
                                      const void* source, std::size_t size_bytes, int root) {
  return detail::broadcast<Block>(job, team, dest, source, size_bytes, root,
                                  detail::share_of_grid());
}

/// fcollect (all-gather): dest + i * size_bytes = source of member i (`size_bytes` each). In place
/// allowed: source == dest + my index * size_bytes.
template <class Scope>
__device__ inline bool fcollect(const DeviceJob& job, int team, void* dest, const void* source,
                                std::size_t size_bytes) {
  return detail::gather<Scope>(job, team, dest, source, size_bytes, 0, {0, 1});
}
__device__ inline bool fcollect_grid(const DeviceJob& job, int team, void* dest, const void* source,
                                     std::size_t size_bytes) {
  return detail::gather<Block>(job, team, dest, source, size_bytes, 0, detail::share_of_grid());
}

/// alltoall: dest + i * size_bytes = member i's data at source + my index * size_bytes.
template <class Scope>
__device__ inline bool alltoall(const DeviceJob& job, int team, void* dest, const void* source,
                                std::size_t size_bytes) {
  return detail::gather<Scope>(job, team, dest, source, size_bytes, size_bytes, {0, 1});
}
__device__ inline bool alltoall_grid(const DeviceJob& job, int team, void* dest, const void* source,
                                     std::size_t size_bytes) {
  return detail::gather<Block>(job, team, dest, source, size_bytes, size_bytes,
                               detail::share_of_grid());
}

/// alltoallv: sends size_bytes[j] bytes from source + source_offset_bytes[j] to member j's dest +
/// dest_offset_bytes[j]; the arrays are this PE's own. Receivers need not know the sizes; senders
/// must make sure that ranges do not overlap.
template <class Scope>
__device__ inline bool alltoallv(const DeviceJob& job, int team_number, void* dest,
                                 const void* source, const std::uint64_t* size_bytes,
                                 const std::uint64_t* source_offset_bytes,
                                 const std::uint64_t* dest_offset_bytes) {
  const TeamView team = team_view(job, team_number);
  return detail::can_collect(job, team_number, team) &&
         detail::alltoallv_large<Scope>(job, team, dest, source, size_bytes, source_offset_bytes,
                                        dest_offset_bytes, {0, 1});
}
__device__ inline bool alltoallv_grid(const DeviceJob& job, int team_number, void* dest,
                                      const void* source, const std::uint64_t* size_bytes,
                                      const std::uint64_t* source_offset_bytes,
                                      const std::uint64_t* dest_offset_bytes) {
  const TeamView team = team_view(job, team_number);
  return detail::can_collect(job, team_number, team) &&
         detail::alltoallv_large<Block>(job, team, dest, source, size_bytes, source_offset_bytes,
                                        dest_offset_bytes, detail::share_of_grid());
}

/// collect: dest = the members' data concatenated in member order; `size_bytes` is this member's
/// size, which the others need not know. In place is allowed if a member's own data is already at
/// its final address.
template <class Scope>
__device__ inline bool collect(const DeviceJob& job, int team_number, void* dest,
                               const void* source, std::size_t size_bytes) {
  const TeamView team = team_view(job, team_number);
  return detail::can_collect(job, team_number, team) &&
         detail::collect_large<Scope>(job, team, dest, source, size_bytes, {0, 1});
}
__device__ inline bool collect_grid(const DeviceJob& job, int team_number, void* dest,
                                    const void* source, std::size_t size_bytes) {
  const TeamView team = team_view(job, team_number);
  return detail::can_collect(job, team_number, team) &&
         detail::collect_large<Block>(job, team, dest, source, size_bytes, detail::share_of_grid());
}

/// alltoalls: alltoall() with strides: dest[(i * count + k) * dest_stride] = member i's source[(my
/// index * count + k) * source_stride]. Values of 1, 2, 4, 8 or 16 bytes.
template <class Scope, class T>
__device__ inline bool alltoalls(const DeviceJob& job, int team_number, T* dest, const T* source,
                                 std::ptrdiff_t dest_stride, std::ptrdiff_t source_stride,
                                 std::size_t count) {
  const TeamView team = team_view(job, team_number);
  return detail::can_collect(job, team_number, team) &&
         detail::alltoalls_large<Scope>(job, team, dest, source, dest_stride, source_stride, count,
                                        {0, 1});
}
template <class T>
__device__ inline bool alltoalls_grid(const DeviceJob& job, int team_number, T* dest,
                                      const T* source, std::ptrdiff_t dest_stride,
                                      std::ptrdiff_t source_stride, std::size_t count) {
  const TeamView team = team_view(job, team_number);
  return detail::can_collect(job, team_number, team) &&
         detail::alltoalls_large<Block>(job, team, dest, source, dest_stride, source_stride, count,
                                        detail::share_of_grid());
}

/// Reduction (all-reduce): dest[k] = source[k] of all members, combined in member order (bitwise
/// identical on all). T: integers of 1, 2, 4 and 8 bytes, signed or unsigned, float, double, Bf16,
/// Fp16; the last two accumulate in FP32 and are rounded once. In place allowed.
template <class Scope, class T>
__device__ inline bool reduce(const DeviceJob& job, int team, T* dest, const T* source,
                              std::size_t count, ReduceOp op) {
  return detail::reduce<Scope, T>(job, team, dest, source, count, op, false, {0, 1});
}
template <class T>
__device__ inline bool reduce_grid(const DeviceJob& job, int team, T* dest, const T* source,
                                   std::size_t count, ReduceOp op) {
  return detail::reduce<Block, T>(job, team, dest, source, count, op, false,
                                  detail::share_of_grid());
}

/// Reduce-scatter: dest[k] = source[my index * count + k] of all members, combined.
template <class Scope, class T>
__device__ inline bool reducescatter(const DeviceJob& job, int team, T* dest, const T* source,
                                     std::size_t count, ReduceOp op) {
  return detail::reduce<Scope, T>(job, team, dest, source, count, op, true, {0, 1});
}
template <class T>
__device__ inline bool reducescatter_grid(const DeviceJob& job, int team, T* dest, const T* source,
                                          std::size_t count, ReduceOp op) {
  return detail::reduce<Block, T>(job, team, dest, source, count, op, true,
                                  detail::share_of_grid());
}

} // namespace shmemctl::device
