// Reductions of teams with members that are reached over the network: their operands are fetched by
// network gets into the scratch memory of this PE's team flags, window by window; results are sent
// by network puts. Peer-mapped members are accessed by loads and stores.
//
// The scratch is the buffer of the team's small messages, which such a team never uses for
// messages: whether members map each other is symmetric, and does not change during the team's
// life.
#pragma once

#include "kernels/device/collectives_large.cuh"

namespace shmemctl::device::detail {

__device__ inline bool is_mapped(const DeviceJob& job, int pe) {
  return job.heap_delta_bytes[pe] != DeviceJob::unreachable;
}

/// Scratch of one part: a slot for each network member, in member order.
class NetworkScratch {
public:
  __device__ NetworkScratch(const DeviceJob& job, const TeamView& team, Share share) {
    int n_network = 0;
    for (int k = 0; k < team.n; ++k)
      n_network += is_mapped(job, team.pe(k)) ? 0 : 1;
    shape_ = plan::network_windows(n_network, share.parts);
    base_ = reinterpret_cast<std::byte*>(team.cells->messages) +
            static_cast<std::size_t>(share.part) * static_cast<std::size_t>(n_network) *
                shape_.slot_bytes;
  }
  /// Number of parts that share the work: limited by the scratch.
  __device__ int parts() const { return shape_.parts; }
  __device__ std::size_t slot_bytes() const { return shape_.slot_bytes; }
  template <class T>
  __device__ T* slot(int far) const {
    return reinterpret_cast<T*>(base_ + static_cast<std::size_t>(far) * shape_.slot_bytes);
  }

private:
  plan::NetworkWindows shape_{};
  std::byte* base_;
};

/// Fetches all network members' operands at `source` into the scratch. Called by the whole scope.
template <class Scope, class T>
inline __device__ __noinline__ bool fetch_window(const DeviceJob& job, const TeamView& team,
                                                 const NetworkScratch& scratch, const T* source,
                                                 std::uint64_t count) {
  Scope::sync(); // all threads have finished reading the previous window
  bool ok = true;
  if (Scope::rank() == 0) {
    int far = 0;
    for (int k = 0; ok && k < team.n; ++k)
      if (!is_mapped(job, team.pe(k)))
        ok = network_get(job, scratch.template slot<T>(far++), network_address_of(job, source),
                         count * sizeof(T), team.pe(k), false);
    ok = ok && network_quiet(job);
  }
  return Scope::all(ok);
}

/// Reduces a window of all members' operands, in member order: into this PE's `dest`, and, with
/// `to_all`, into those of peer-mapped members.
template <class Scope, class T>
inline __device__ __noinline__ void
add_window(const DeviceJob& job, const TeamView& team, const NetworkScratch& scratch, T* dest,
           const T* source, std::uint64_t count, ReduceOp op, bool to_all) {
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

/// reduce_large() for a team with network members. Each member sends its part of the result to
/// network members from that part of its own dest, to which no other member writes.
template <class Scope, class T>
inline __device__ __noinline__ bool
reduce_over_network(const DeviceJob& job, const TeamView& team, T* dest, const T* source,
                    std::uint64_t count, ReduceOp op, bool scatter, Share share) {
  LargeCollective<Scope> collective(job, team, share);
  if (!collective.begin_with_all())
    return false;
  const NetworkScratch scratch(job, team, share);
  if (share.part >= scratch.parts())
    return collective.end(true);
  constexpr std::uint64_t wide = 16 / sizeof(T);
  const auto me = static_cast<std::uint64_t>(team.me);
  const plan::Piece chunk =
      scatter ? plan::Piece{0, count}
              : plan::piece_of(count, static_cast<std::uint64_t>(team.n), me, wide);
  const plan::Piece own_piece =
      plan::piece_of(chunk.size, static_cast<std::uint64_t>(scratch.parts()),
                     static_cast<std::uint64_t>(share.part), wide);
  const T* const from = source + (scatter ? me * count : 0) + chunk.begin + own_piece.begin;
  T* const to = dest + chunk.begin + own_piece.begin;
  const std::uint64_t window = scratch.slot_bytes() / sizeof(T);
  for (std::uint64_t at = 0; at < own_piece.size; at += window) {
    const std::uint64_t here = own_piece.size - at < window ? own_piece.size - at : window;
    if (!fetch_window<Scope, T>(job, team, scratch, from + at, here))
      return false; // the done flag must not be set
    add_window<Scope, T>(job, team, scratch, to + at, from + at, here, op, !scatter);
    for (int k = 0; !scatter && k < team.n; ++k)
      if (!is_mapped(job, team.pe(k)))
        put_nbi<Scope>(job, to + at, to + at, here * sizeof(T), team.pe(k));
  }
  return collective.end(true);
}

} // namespace shmemctl::device::detail
