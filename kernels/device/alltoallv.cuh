// Collectives that store directly into dest and whose parts differ in size (collect) or are strided
// (alltoalls).
#pragma once

#include "kernels/device/collectives_large.cuh"

namespace shmemctl::device::detail {

/// Stores this member's `size_bytes` into every dest, after the data of the members before it.
template <class Scope>
inline __device__ __noinline__ bool collect_large(const DeviceJob& job, const TeamView& team,
                                                  void* dest, const void* source,
                                                  std::size_t size_bytes, Share share) {
  LargeCollective<Scope> collective(job, team, share);
  bool ok = collective.begin_collect(size_bytes);
  std::uint64_t offset_bytes = 0;
  if (!collective.before_mine(offset_bytes))
    return false;
  std::byte* const to = static_cast<std::byte*>(dest) + offset_bytes;
  const bool stored = each_task(team, share, [&](plan::Task task) {
    const plan::Piece piece = piece_for(team, share, size_bytes, task);
    const std::byte* const from = static_cast<const std::byte*>(source) + piece.begin;
    if (piece.size == 0 || is_there(team, task, to + piece.begin, from))
      return true;
    if (!collective.wait_flag(task.member))
      return false;
    put_nbi<Scope>(job, to + piece.begin, from, piece.size, team.pe(task.member));
    return true;
  });
  return stored && collective.end(ok);
}

/// Sends to each member j `count` values, source_stride apart, from the j-th part of `source` to
/// the part of this member in j's dest.
template <class Scope, class T>
inline __device__ __noinline__ bool
alltoalls_large(const DeviceJob& job, const TeamView& team, T* dest, const T* source,
                std::ptrdiff_t dest_stride, std::ptrdiff_t source_stride, std::size_t count,
                Share share) {
  LargeCollective<Scope> collective(job, team, share);
  const bool ok = collective.begin();
  const auto part = [count](int member, std::uint64_t begin) {
    return static_cast<std::ptrdiff_t>(static_cast<std::size_t>(member) * count + begin);
  };
  const bool stored = each_task(team, share, [&](plan::Task task) {
    const plan::Piece piece = piece_for(team, share, count, task);
    if (piece.size == 0)
      return true;
    if (!collective.wait_flag(task.member))
      return false;
    iput<Scope>(job, dest + part(team.me, piece.begin) * dest_stride,
                source + part(task.member, piece.begin) * source_stride, dest_stride, source_stride,
                piece.size, team.pe(task.member));
    return true;
  });
  return stored && collective.end(ok);
}

} // namespace shmemctl::device::detail
