// Collectives of many bytes: everybody tells everybody that it has begun, stores straight into the
// final places, and tells that its data are there. A `part` is one of `parts` scopes of each member
// that do one collective together: the blocks of a launch, or one scope alone.
//
// The parts of one member do not wait for each other: each tells all members that it has stored,
// and only the last in number, which starts behind all others, waits for everybody's. So a grid
// need not be resident as a whole.
#pragma once

#include "kernels/device/collectives_small.cuh"

namespace shmemctl::device::detail {

struct Share {
  int part, parts;
};

template <class Scope>
class LargeCollective {
public:
  __device__ LargeCollective(const DeviceJob& job, const TeamView& team, Share share)
      : job_(job), team_(team), share_(share) {}

  /// Tells the members that this one has begun: then its source is ready, and its destination may
  /// be written. False, in any thread, if that failed.
  __device__ bool begin() {
    Scope::sync();
    epoch_ = team_.cells->collective_epoch + 1;
    done_ = (team_.cells->large_collectives + 1) * plan::whole_count;
    bool ok = true, released = false;
    if (share_.part == 0)
      for (int i = Scope::rank(); i < team_.n; i += Scope::size())
        if (i != team_.me) // release: others may read what this scope wrote into its source
          ok = tell(job_, &team_.cells->entered[team_.me], epoch_, team_.pe(i), released) && ok;
    return ok;
  }
  /// Waits until that member has begun.
  __device__ bool hear(int member) {
    bool ok = true;
    if (member != team_.me && Scope::rank() == 0)
      wait_at_least(job_, &team_.cells->entered[member], epoch_, team_.pe(member), ok);
    return Scope::all(ok);
  }
  __device__ bool begin_with_all() {
    const bool ok = begin();
#ifdef SHMEMCTL_MUTATE_REDUCE_HEAR
    return Scope::all(ok);
#else
    return Scope::all(hear_my_share() && ok);
#endif
  }

  /// begin() of a collect: the members hear what this one brings, too.
  __device__ bool begin_collect(std::uint64_t size_bytes) {
    bool ok = begin();
    collect_ = team_.cells->collects + 1;
    bool released = false;
    if (share_.part == 0)
      for (int i = team_.me + 1 + Scope::rank(); i < team_.n; i += Scope::size())
        ok = tell(job_, &team_.cells->sizes[team_.me], plan::size_word(size_bytes, collect_),
                  team_.pe(i), released) &&
             ok;
    return ok;
  }
  /// How much the members before this one bring; false if one did not say so in time. Nobody writes
  /// a word again while it is read: its member ends this call when all parts of all have ended it.
  __device__ bool before_mine(std::uint64_t& size_bytes) {
    bool ok = true;
    for (int i = Scope::rank(); i < team_.me; i += Scope::size())
      ok = hear_size(i) && ok;
    ok = Scope::all(ok);
    size_bytes = 0;
#pragma unroll 4
    for (int i = 0; i < team_.me; ++i)
      size_bytes += plan::size_in(load_relaxed(&team_.cells->sizes[i]));
    return ok;
  }

  /// This part has stored and loaded all that it had to. The last one returns when all of `from` (a
  /// member; -1: everybody) are ready too.
  __device__ bool end(bool ok, int from = -1) {
    // Who has begun has seen all that this PE counted up in the collective before: what is counted
    // now cannot be taken for it. On the way of the stores, so it takes no time.
    ok = hear_my_share() && ok;
#ifndef SHMEMCTL_MUTATE_COLLECTIVE_SYNC
    Scope::sync(); // the releases below cover what the scope's other threads stored
#endif
    if (has_network(job_)) {
      if (!is_last())
        return true;
      // What went by the network is there before the word behind it.
      ok = Scope::all(ok && (Scope::rank() != 0 || network_quiet(job_)));
      ok = tell_done(plan::whole_count) && ok;
    } else {
      ok = tell_done(plan::count_of(share_.part, share_.parts)) && ok;
      if (share_.part != share_.parts - 1)
        return true;
    }
    for (int i = Scope::rank(); i < team_.n; i += Scope::size()) {
      bool in_time = true;
      // Of my own parts, too: all of them have read the epochs then.
      if (from < 0 || i == from || i == team_.me)
        wait_at_least(job_, &team_.cells->done[i], done_, team_.pe(i), in_time);
      ok = ok && in_time;
    }
    ok = Scope::all(ok);
    if (Scope::rank() == 0) {
      team_.cells->collective_epoch = epoch_;
      team_.cells->heard_epoch = epoch_;
      team_.cells->large_collectives = done_ / plan::whole_count;
      if (collect_ != 0)
        team_.cells->collects = collect_;
    }
    Scope::sync();
    return ok;
  }

private:
  /// Each thread waits for some of the members to begin.
  __device__ bool hear_my_share() {
    bool ok = true;
    for (int i = Scope::rank(); i < team_.n; i += Scope::size())
      if (i != team_.me) {
        bool in_time = true;
        wait_at_least(job_, &team_.cells->entered[i], epoch_, team_.pe(i), in_time);
        ok = ok && in_time;
      }
    return ok;
  }

  __device__ bool hear_size(int member) {
    const std::uint64_t* const at = &team_.cells->sizes[member];
    const std::uint64_t number = plan::number_in(collect_);
    std::uint64_t seen = load_acquire(at);
    for (Patience patience; plan::number_in(seen) != number; seen = load_acquire(at))
      if (patience.over(job_)) {
        report_wait(job_, team_.pe(member), number, plan::number_in(seen), at);
        return false;
      }
    return true;
  }

  /// Counts up by `count` at all members.
  __device__ bool tell_done(std::uint64_t count) {
    bool ok = true, released = false;
    std::uint64_t* const mine = &team_.cells->done[team_.me];
    for (int i = Scope::rank(); i < team_.n; i += Scope::size())
      if (std::uint64_t* const there = cell_of(job_, mine, team_.pe(i)))
#ifdef SHMEMCTL_MUTATE_COLLECTIVE_RELEASE
        add_relaxed(there, count);
#else
        add_release(there, count);
#endif
      else // the whole, by one part: nobody else writes the word
        ok = tell(job_, mine, done_, team_.pe(i), released) && ok;
    return ok;
  }

  /// Whether all other parts have come here before this one; then it sees what they did.
  __device__ bool is_last() {
    bool last = false;
    if (Scope::rank() == 0) {
      std::uint64_t* const counter = &team_.cells->block_counters[2];
#ifdef SHMEMCTL_MUTATE_COLLECTIVE_BLOCK_FENCE
      const std::uint64_t earlier = atomic_word_add(counter, std::uint64_t{1});
#else
      // This part's stores (behind its sync) come before its count, and all others' counts before
      // what the last one tells: of this GPU's scope, as grid_meet().
      const std::uint64_t earlier = atomic_word_add_ordered(counter, 1);
#endif
      last = earlier + 1 == static_cast<std::uint64_t>(share_.parts);
      if (last)
        store_relaxed(counter, 0);
    }
    return Scope::broadcast(last ? 1 : 0) != 0;
  }

  const DeviceJob& job_;
  const TeamView& team_;
  Share share_;
  std::uint64_t epoch_ = 0, done_ = 0;
  std::uint64_t collect_ = 0; ///< the number of this collect; 0: it is none
};

/// Calls run(task) for each task of a part; false, at once, if one of them is.
template <class Run>
__device__ inline bool each_task(const TeamView& team, Share share, Run&& run) {
  const int tasks = plan::pieces_for(share.parts, team.n) * team.n;
  for (int turn = 0; share.part + turn * share.parts < tasks; ++turn)
    if (!run(plan::task_of(turn, share.part, share.parts, team.n, team.me)))
      return false;
  return true;
}
__device__ inline plan::Piece piece_for(const TeamView& team, Share share, std::uint64_t size_bytes,
                                        plan::Task task) {
  return plan::piece_of(size_bytes,
                        static_cast<std::uint64_t>(plan::pieces_for(share.parts, team.n)),
                        static_cast<std::uint64_t>(task.piece), 128);
}

/// In place, this PE's own part is there.
__device__ inline bool is_there(const TeamView& team, plan::Task task, const std::byte* to,
                                const std::byte* from) {
  return task.member == team.me && to == from;
}

/// To each member j: `size_bytes` at source + j * stride_bytes, to its dest + my number *
/// size_bytes.
template <class Scope>
__device__ inline bool gather_large(const DeviceJob& job, const TeamView& team, void* dest,
                                    const void* source, std::size_t size_bytes,
                                    std::size_t stride_bytes, Share share) {
  LargeCollective<Scope> collective(job, team, share);
  const bool ok = collective.begin();
  std::byte* const to =
      static_cast<std::byte*>(dest) + static_cast<std::size_t>(team.me) * size_bytes;
  const bool stored = each_task(team, share, [&](plan::Task task) {
    const plan::Piece piece = piece_for(team, share, size_bytes, task);
    const std::byte* const from = static_cast<const std::byte*>(source) +
                                  static_cast<std::size_t>(task.member) * stride_bytes +
                                  piece.begin;
    if (piece.size == 0 || is_there(team, task, to + piece.begin, from))
      return true;
    if (!collective.hear(task.member))
      return false;
    put_nbi<Scope>(job, to + piece.begin, from, piece.size, team.pe(task.member));
    return true;
  });
  return stored && collective.end(ok);
}

template <class Scope>
inline __device__ __noinline__ bool broadcast_large(const DeviceJob& job, const TeamView& team,
                                                    void* dest, const void* source,
                                                    std::size_t size_bytes, int root, Share share) {
  LargeCollective<Scope> collective(job, team, share);
  if (!collective.begin_with_all())
    return false;
  if (team.me == root)
    each_task(team, share, [&](plan::Task task) {
      const plan::Piece piece = piece_for(team, share, size_bytes, task);
      if (piece.size > 0 && (task.member != team.me || dest != source))
        put_nbi<Scope>(job, static_cast<std::byte*>(dest) + piece.begin,
                       static_cast<const std::byte*>(source) + piece.begin, piece.size,
                       team.pe(task.member));
      return true;
    });
  return collective.end(true, root);
}

/// Sizes and places are known to the sender, by member.
template <class Scope>
inline __device__ __noinline__ bool
alltoallv_large(const DeviceJob& job, const TeamView& team, void* dest, const void* source,
                const std::uint64_t* size_bytes, const std::uint64_t* source_offset_bytes,
                const std::uint64_t* dest_offset_bytes, Share share) {
  LargeCollective<Scope> collective(job, team, share);
  const bool ok = collective.begin();
  const bool stored = each_task(team, share, [&](plan::Task task) {
    const plan::Piece piece = piece_for(team, share, size_bytes[task.member], task);
    if (piece.size == 0)
      return true;
    if (!collective.hear(task.member))
      return false;
    put_nbi<Scope>(
        job, static_cast<std::byte*>(dest) + dest_offset_bytes[task.member] + piece.begin,
        static_cast<const std::byte*>(source) + source_offset_bytes[task.member] + piece.begin,
        piece.size, team.pe(task.member));
    return true;
  });
  return stored && collective.end(ok);
}

/// A PE whose memory is not mapped here; -1 if all members' is.
__device__ inline int unmapped_member(const DeviceJob& job, const TeamView& team) {
  if (job.all_mapped)
    return -1;
  int found = -1;
#pragma unroll 4
  for (int i = 0; i < team.n; ++i) { // all are looked at: loads that do not wait for each other
    const int pe = team.pe(i);
    if (heap_delta_of(job, pe) == DeviceJob::unreachable ||
        cells_delta_of(job, pe) == DeviceJob::unreachable)
      found = pe;
  }
  return found;
}

__device__ inline int4 load_fresh(const int4* at) {
  return load_relaxed(at);
}
template <class T>
__device__ inline T load_fresh(const T* at) {
  T value;
  if constexpr (sizeof(T) == 2) { // 16-bit numbers may be of a class
    const std::uint16_t bits = *reinterpret_cast<const volatile std::uint16_t*>(at);
    memcpy(&value, &bits, sizeof value);
  } else {
    value = *const_cast<const volatile T*>(at);
  }
  return value;
}

/// `count` units of type Raw from all members' `source`, added up, to `dest` of this PE, or of all
/// members. Each unit is loaded and stored by one thread, so `dest` may be `source`.
template <class Scope, class T, class Raw>
inline __device__ __noinline__ void reduce_units(const DeviceJob& job, const TeamView& team,
                                                 Raw* dest, const Raw* source, std::uint64_t count,
                                                 ReduceOp op, bool to_all) {
  constexpr int at_once = 4; // loads in flight
  for (auto i = static_cast<std::uint64_t>(Scope::rank()); i < count;
       i += static_cast<std::uint64_t>(Scope::size())) {
    Raw first = load_fresh(pointer_to(job, source + i, team.pe(0)));
    Accumulator<T, Raw> sum(first);
    for (int begin = 1; begin < team.n; begin += at_once) {
      Raw seen[at_once];
#pragma unroll
      for (int k = 0; k < at_once; ++k)
        if (begin + k < team.n)
          seen[k] = load_fresh(pointer_to(job, source + i, team.pe(begin + k)));
#pragma unroll
      for (int k = 0; k < at_once; ++k)
        if (begin + k < team.n)
          sum.take(op, seen[k]);
    }
    const Raw result = sum.result();
    if (!to_all)
      dest[i] = result;
    else
      for (int k = 0; k < team.n; ++k)
        *pointer_to(job, dest + i, team.pe((team.me + k) % team.n)) = result;
  }
}

/// Each member adds up its part of the numbers out of all members' sources: to everybody's dest at
/// the same place (`scatter` false), or, its part being the me-th `count` numbers, to its own dest.
template <class Scope, class T>
__device__ inline bool reduce_large(const DeviceJob& job, const TeamView& team, T* dest,
                                    const T* source, std::uint64_t count, ReduceOp op, bool scatter,
                                    Share share) {
  LargeCollective<Scope> collective(job, team, share);
  if (!collective.begin_with_all())
    return false;
  constexpr std::uint64_t wide = 16 / sizeof(T);
  const auto me = static_cast<std::uint64_t>(team.me);
  const plan::Piece chunk =
      scatter ? plan::Piece{0, count}
              : plan::piece_of(count, static_cast<std::uint64_t>(team.n), me, wide);
  const plan::Piece mine = plan::piece_of(chunk.size, static_cast<std::uint64_t>(share.parts),
                                          static_cast<std::uint64_t>(share.part), wide);
  const T* const from = source + (scatter ? me * count : 0) + chunk.begin + mine.begin;
  T* const to = dest + chunk.begin + mine.begin;
  std::uint64_t done = 0;
  if ((reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to)) % 16 == 0) {
    done = mine.size / wide * wide;
    reduce_units<Scope, T>(job, team, reinterpret_cast<int4*>(to),
                           reinterpret_cast<const int4*>(from), done / wide, op, !scatter);
  }
  reduce_units<Scope, T>(job, team, to + done, from + done, mine.size - done, op, !scatter);
  return collective.end(true);
}

} // namespace shmemctl::device::detail
