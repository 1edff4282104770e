// Reductions of teams with members whose memory is not mapped: their numbers come by gets of the
// network into scratch of this PE's cells, a window after the other; the result goes to them by
// puts. Near members are loaded from and stored to as ever.
//
// The scratch is the room of the team's small messages, which such a team never sends: which
// members are mapped does not change while the team lives, and is the same relation for all.
#pragma once

#include "kernels/device/collectives_large.cuh"

namespace shmemctl::device::detail {

__device__ inline bool is_near(const DeviceJob& job, int pe) {
  return job.heap_delta_bytes[pe] != DeviceJob::unreachable;
}

/// What one part fetches into: a slot for each far member, in the order of the members.
class FarScratch {
public:
  __device__ FarScratch(const DeviceJob& job, const TeamView& team, Share share) {
    int n_far = 0;
    for (int k = 0; k < team.n; ++k)
      n_far += is_near(job, team.pe(k)) ? 0 : 1;
    shape_ = plan::far_windows(n_far, share.parts);
    base_ =
        reinterpret_cast<std::byte*>(team.cells->messages) +
        static_cast<std::size_t>(share.part) * static_cast<std::size_t>(n_far) * shape_.slot_bytes;
  }
  /// Parts that take a share of the work: there is not scratch for any number of them.
  __device__ int parts() const { return shape_.parts; }
  __device__ std::size_t slot_bytes() const { return shape_.slot_bytes; }
  template <class T>
  __device__ T* slot(int far) const {
    return reinterpret_cast<T*>(base_ + static_cast<std::size_t>(far) * shape_.slot_bytes);
  }

private:
  plan::FarWindows shape_{};
  std::byte* base_;
};

/// All far members' numbers at `source` are in the scratch behind it. By the whole scope.
template <class Scope, class T>
inline __device__ __noinline__ bool fetch_window(const DeviceJob& job, const TeamView& team,
                                                 const FarScratch& scratch, const T* source,
                                                 std::uint64_t count) {
  Scope::sync(); // nobody reads the window before any more
  bool ok = true;
  if (Scope::rank() == 0) {
    int far = 0;
    for (int k = 0; ok && k < team.n; ++k)
      if (!is_near(job, team.pe(k)))
        ok = network_get(job, scratch.template slot<T>(far++), place_of(job, source),
                         count * sizeof(T), team.pe(k), false);
#ifndef SHMEMCTL_MUTATE_FAR_GET_QUIET
    ok = ok && network_quiet(job);
#endif
  }
  return Scope::all(ok);
}

/// Adds up a window of all members' numbers, in the order of the members: to this PE's `dest`, and
/// `to_all` near ones'.
template <class Scope, class T>
inline __device__ __noinline__ void add_window(const DeviceJob& job, const TeamView& team,
                                               const FarScratch& scratch, T* dest, const T* source,
                                               std::uint64_t count, ReduceOp op, bool to_all) {
  for (auto i = static_cast<std::uint64_t>(Scope::rank()); i < count;
       i += static_cast<std::uint64_t>(Scope::size())) {
    int far = 0;
    const auto number_of = [&](int k) {
      const T* const near = pointer_to(job, source + i, team.pe(k));
      return load_fresh(near != nullptr ? near : scratch.template slot<T>(far++) + i);
    };
    Accumulator<T, T> sum(number_of(0));
    for (int k = 1; k < team.n; ++k)
      sum.take(op, number_of(k));
    const T result = sum.result();
    if (!to_all)
      dest[i] = result;
    else
      for (int k = 0; k < team.n; ++k)
        if (T* const there = pointer_to(job, dest + i, team.pe(k)))
          *there = result;
  }
}

/// reduce_large() of such a team. Each member gives its part of the result to far ones out of its
/// own dest, where nobody else writes.
template <class Scope, class T>
inline __device__ __noinline__ bool reduce_far(const DeviceJob& job, const TeamView& team, T* dest,
                                               const T* source, std::uint64_t count, ReduceOp op,
                                               bool scatter, Share share) {
  LargeCollective<Scope> collective(job, team, share);
  if (!collective.begin_with_all())
    return false;
  const FarScratch scratch(job, team, share);
  if (share.part >= scratch.parts())
    return collective.end(true);
  constexpr std::uint64_t wide = 16 / sizeof(T);
  const auto me = static_cast<std::uint64_t>(team.me);
  const plan::Piece chunk =
      scatter ? plan::Piece{0, count}
              : plan::piece_of(count, static_cast<std::uint64_t>(team.n), me, wide);
  const plan::Piece mine = plan::piece_of(chunk.size, static_cast<std::uint64_t>(scratch.parts()),
                                          static_cast<std::uint64_t>(share.part), wide);
  const T* const from = source + (scatter ? me * count : 0) + chunk.begin + mine.begin;
  T* const to = dest + chunk.begin + mine.begin;
  const std::uint64_t window = scratch.slot_bytes() / sizeof(T);
  for (std::uint64_t at = 0; at < mine.size; at += window) {
    const std::uint64_t here = mine.size - at < window ? mine.size - at : window;
    if (!fetch_window<Scope, T>(job, team, scratch, from + at, here))
      return false; // the others must not hear that this part is done
    add_window<Scope, T>(job, team, scratch, to + at, from + at, here, op, !scatter);
    for (int k = 0; !scatter && k < team.n; ++k)
      if (!is_near(job, team.pe(k)))
        put_nbi<Scope>(job, to + at, to + at, here * sizeof(T), team.pe(k));
  }
  return collective.end(true);
}

} // namespace shmemctl::device::detail
