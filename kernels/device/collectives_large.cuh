// Large collectives: each member sets its entered flag at all others, stores directly into the
// destinations, and adds to its done flag at all members. A `part` is one of `parts` scopes of each
// member that perform one collective together: the blocks of a launch, or one scope.
//
// Each part adds to its member's done flag at all members, and only the part with the highest
// index, which is scheduled after all others, waits for done flags, its own member's included. So
// the grid need not be resident as a whole. In jobs with a network, only the part that finishes
// last sets the done flags, and waits.
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

  /// Sets the entered flags: this member's source is ready, and its dest may be written. False in
  /// those threads of the scope that failed to set a flag.
  __device__ bool begin() {
    Scope::sync();
    epoch_ = team_.cells->collective_epoch + 1;
    done_ = (team_.cells->large_collectives + 1) * plan::whole_count;
    bool ok = true;
    FlagRelease<Scope> release;
    if (share_.part == 0)
      for (int i = Scope::rank(); i < team_.n; i += Scope::size())
        if (i != team_.me) // release: others may read the source that this scope has written
          ok = set_flag(job_, &team_.cells->entered[team_.me], epoch_, team_.pe(i), release) && ok;
    return ok;
  }
  /// Waits until that member has entered.
  __device__ bool wait_flag(int member) {
    bool ok = true;
    if (member != team_.me && Scope::rank() == 0)
      wait_at_least(job_, &team_.cells->entered[member], epoch_, team_.pe(member), ok);
    return Scope::all(ok);
  }
  /// Waits until all members have entered.
  __device__ bool wait_flags() { return Scope::all(wait_my_share()); }
  __device__ bool begin_with_all() {
    const bool ok = begin();
    return Scope::all(wait_my_share() && ok);
  }

  /// begin() of a collect, which also publishes this member's size.
  __device__ bool begin_collect(std::uint64_t size_bytes) {
    bool ok = begin();
    collect_ = team_.cells->collects + 1;
    FlagRelease<Scope> release;
    if (share_.part == 0)
      for (int i = team_.me + 1 + Scope::rank(); i < team_.n; i += Scope::size())
        ok = set_flag(job_, &team_.cells->sizes[team_.me], plan::size_word(size_bytes, collect_),
                      team_.pe(i), release) &&
             ok;
    return ok;
  }
  /// Total size of the members before this one; false on timeout. A size word is not overwritten
  /// while it is read: its member leaves this call only when all parts of all members have
  /// finished.
  __device__ bool before_mine(std::uint64_t& size_bytes) {
    bool ok = true;
    for (int i = Scope::rank(); i < team_.me; i += Scope::size())
      ok = wait_size(i) && ok;
    ok = Scope::all(ok);
    size_bytes = 0;
#pragma unroll 4
    for (int i = 0; i < team_.me; ++i)
      size_bytes += plan::size_in(load_relaxed(&team_.cells->sizes[i]));
    return ok;
  }

  /// Called when this part has finished its stores and loads. The last part returns when all parts
  /// of member `from` (-1: of all members) have finished, too.
  __device__ bool end(bool ok, int from = -1) {
    // A member that has entered no longer waits for counts of the previous collective, so what is
    // added from here on cannot be mistaken for one of them. The wait overlaps with the stores, so
    // it costs no time.
    ok = wait_my_share() && ok;
    Scope::sync(); // the releases below cover the stores of the scope's other threads
    if (has_network(job_)) {
      if (!is_last())
        return true;
      // Network puts must be complete before the flag is set.
      ok = Scope::all(ok && (Scope::rank() != 0 || network_quiet(job_)));
      ok = set_done_flags(plan::whole_count) && ok;
    } else {
      ok = set_done_flags(plan::count_of(share_.part, share_.parts)) && ok;
      if (share_.part != share_.parts - 1)
        return true;
    }
    for (int i = Scope::rank(); i < team_.n; i += Scope::size()) {
      bool in_time = true;
      // Waits for this PE's own parts, too: when they are done, all of them have read the epochs.
      if (from < 0 || i == from || i == team_.me)
        wait_at_least(job_, &team_.cells->done[i], done_, team_.pe(i), in_time);
      ok = ok && in_time;
    }
    ok = Scope::all(ok);
    if (Scope::rank() == 0) {
      team_.cells->collective_epoch = epoch_;
      team_.cells->entered_epoch = epoch_;
      team_.cells->large_collectives = done_ / plan::whole_count;
      if (collect_ != 0)
        team_.cells->collects = collect_;
    }
    Scope::sync();
    return ok;
  }

private:
  /// Each thread waits for some of the members' entered flags.
  __device__ bool wait_my_share() {
    bool ok = true;
    for (int i = Scope::rank(); i < team_.n; i += Scope::size())
      if (i != team_.me) {
        bool in_time = true;
        wait_at_least(job_, &team_.cells->entered[i], epoch_, team_.pe(i), in_time);
        ok = ok && in_time;
      }
    return ok;
  }

  __device__ bool wait_size(int member) {
    const std::uint64_t* const at = &team_.cells->sizes[member];
    const std::uint64_t number = plan::number_in(collect_);
    std::uint64_t seen = 0;
    const auto poll = [&] {
      seen = load_acquire(at);
      return plan::number_in(seen) == number;
    };
    if (poll_until(job_, poll))
      return true;
    report_wait(job_, team_.pe(member), number, plan::number_in(seen), at);
    return false;
  }

  /// Adds `count` to this member's done flag at all members.
  __device__ bool set_done_flags(std::uint64_t count) {
    bool ok = true;
    FlagRelease<Scope> release;
    std::uint64_t* const own_flag = &team_.cells->done[team_.me];
    for (int i = Scope::rank(); i < team_.n; i += Scope::size())
      if (std::uint64_t* const there = peer_flag(job_, own_flag, team_.pe(i)))
        release.mapped.add(there, count);
      else // one part sets the whole count: no other part writes the word
        ok = set_flag(job_, own_flag, done_, team_.pe(i), release) && ok;
    return ok;
  }

  /// Whether all other parts of this PE have arrived here before this one; then their stores are
  /// visible to it.
  __device__ bool is_last() {
    bool last = false;
    if (Scope::rank() == 0) {
      std::uint64_t* const counter = &team_.cells->grid_barrier_counters[2];
      // Acquire-release at GPU scope: this part's stores (after its sync) come before its count,
      // and all others' counts before the flags that the last one sets. As in grid_sync().
      const std::uint64_t earlier = atomic_word_add_ordered(counter, 1);
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
  std::uint64_t collect_ = 0; ///< number of this collect; 0: not a collect
};

/// Calls run(task) for each task of a part; stops and returns false when one fails.
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

/// Whether the task is this PE's own part of an in-place collective, which needs no copy.
__device__ inline bool is_there(const TeamView& team, plan::Task task, const std::byte* to,
                                const std::byte* from) {
  return task.member == team.me && to == from;
}

/// What a part of gather_large() sends when it sends to all members together: `words` words of 16
/// bytes at from + j * stride to member j's `to`.
struct TogetherPieces {
  int4* to;
  const int4* from;
  std::uint64_t stride, words;
  int first; ///< member to begin with
};

/// Sends the pieces. Each thread has loads for several members in flight at a time, and issues the
/// first of them before the members are known to have entered, because the source is this PE's own.
/// If members were served one after the other, as for longer pieces, each of them would cost a wait
/// and the latency of its loads (1.5 us, H100). False if a member did not enter in time.
template <class Scope>
__device__ inline bool send_together(const DeviceJob& job, const TeamView& team,
                                     LargeCollective<Scope>& collective,
                                     const TogetherPieces& pieces) {
  struct Place {
    std::uint64_t at;
    int turn;
  };
  constexpr int at_once = copy_unroll;
  const auto step = static_cast<std::uint64_t>(Scope::size());
  const auto member_of = [&](int turn) {
    const int member = pieces.first + turn;
    return member < team.n ? member : member - team.n;
  };
  const auto advance = [&](Place& place) {
    if (++place.turn == team.n) {
      place.turn = 0;
      place.at += step;
    }
  };
  int4 words[at_once] = {};
  Place next{static_cast<std::uint64_t>(Scope::rank()), 0};
  const auto load = [&] {
    Place place = next;
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      if (place.at < pieces.words)
        words[i] = Local::load(pieces.from +
                               static_cast<std::uint64_t>(member_of(place.turn)) * pieces.stride +
                               place.at);
      advance(place);
    }
  };
  const auto store = [&] {
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      if (next.at < pieces.words) {
        const int member = member_of(next.turn);
        const int4* const own =
            pieces.from + static_cast<std::uint64_t>(member) * pieces.stride + next.at;
        // In place, this PE's own piece is already there.
        if (member != team.me || own != pieces.to + next.at)
          *pointer_to(job, pieces.to + next.at, team.pe(member)) = words[i];
      }
      advance(next);
    }
  };
  load();
  if (!collective.wait_flags())
    return false;
  store();
  while (next.at < pieces.words) {
    load();
    store();
  }
  Scope::converge();
  return true;
}

/// Sends `size_bytes` at source + j * stride_bytes to member j's dest + my index * size_bytes.
template <class Scope>
__device__ inline bool gather_large(const DeviceJob& job, const TeamView& team, void* dest,
                                    const void* source, std::size_t size_bytes,
                                    std::size_t stride_bytes, Share share) {
  LargeCollective<Scope> collective(job, team, share);
  const bool ok = collective.begin();
  std::byte* const to =
      static_cast<std::byte*>(dest) + static_cast<std::size_t>(team.me) * size_bytes;
  const plan::Task begin = plan::task_of(0, share.part, share.parts, team.n, team.me);
  const plan::Piece own = piece_for(team, share, size_bytes, begin); // the same for all members
  if (job.all_mapped && plan::is_sent_together(share.parts, team.n, own.size, Scope::size()) &&
      (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(source) |
       stride_bytes | own.size) %
              sizeof(int4) ==
          0) {
    const TogetherPieces pieces{
        reinterpret_cast<int4*>(to + own.begin),
        reinterpret_cast<const int4*>(static_cast<const std::byte*>(source) + own.begin),
        stride_bytes / sizeof(int4), own.size / sizeof(int4), begin.member};
    return send_together<Scope>(job, team, collective, pieces) && collective.end(ok);
  }
  const bool stored = each_task(team, share, [&](plan::Task task) {
    const plan::Piece piece = piece_for(team, share, size_bytes, task);
    const std::byte* const from = static_cast<const std::byte*>(source) +
                                  static_cast<std::size_t>(task.member) * stride_bytes +
                                  piece.begin;
    if (piece.size == 0 || is_there(team, task, to + piece.begin, from))
      return true;
    if (!collective.wait_flag(task.member))
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

/// alltoallv: the sender knows sizes and offsets, by member.
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
    if (!collective.wait_flag(task.member))
      return false;
    put_nbi<Scope>(
        job, static_cast<std::byte*>(dest) + dest_offset_bytes[task.member] + piece.begin,
        static_cast<const std::byte*>(source) + source_offset_bytes[task.member] + piece.begin,
        piece.size, team.pe(task.member));
    return true;
  });
  return stored && collective.end(ok);
}

/// The PE of a member that is not mapped for kernels; -1 if all are mapped.
__device__ inline int unmapped_member(const DeviceJob& job, const TeamView& team) {
  if (job.all_mapped)
    return -1;
  int found = -1;
#pragma unroll 4
  for (int i = 0; i < team.n; ++i) { // checks all: independent loads
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
  if constexpr (sizeof(T) == 2) { // Bf16 and Fp16 are class types
    const std::uint16_t bits = *reinterpret_cast<const volatile std::uint16_t*>(at);
    memcpy(&value, &bits, sizeof value);
  } else {
    value = *const_cast<const volatile T*>(at);
  }
  return value;
}

/// Reduces `count` units of type Raw from all members' `source` into `dest` of this PE, or of all
/// members. Each unit is loaded and stored by the same thread, so `dest` may be `source`.
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

/// Each member reduces its part of the elements from all members' sources. Without `scatter`, it
/// stores the result into every member's dest, at the same offset. With `scatter`, its part is the
/// `count` elements from me * count on, and it stores the result into its own dest.
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
  const plan::Piece own_piece = plan::piece_of(chunk.size, static_cast<std::uint64_t>(share.parts),
                                               static_cast<std::uint64_t>(share.part), wide);
  const T* const from = source + (scatter ? me * count : 0) + chunk.begin + own_piece.begin;
  T* const to = dest + chunk.begin + own_piece.begin;
  std::uint64_t done = 0;
  if ((reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to)) % 16 == 0) {
    done = own_piece.size / wide * wide;
    reduce_units<Scope, T>(job, team, reinterpret_cast<int4*>(to),
                           reinterpret_cast<const int4*>(from), done / wide, op, !scatter);
  }
  reduce_units<Scope, T>(job, team, to + done, from + done, own_piece.size - done, op, !scatter);
  return collective.end(true);
}

} // namespace shmemctl::device::detail
