// Small collectives (a few KiB): 8-byte words carry data and the collective's epoch in one store,
// as in NCCL's LL protocol, so that members wait only for the data, and after a broadcast for flags
// (device_plan.h: why a double buffer suffices). For teams whose members are all mapped.
//
// Latency is dominated by dependent loads of this PE's own memory, so everything that does not need
// the epoch is loaded and computed before the epoch is known. Gathers are inlined, so that what
// they need of the job comes from kernel parameters.
#pragma once

#include "kernels/device/reduction.cuh"
#include "kernels/device/sync.cuh"

namespace shmemctl::device::detail {

/// Loads up to eight bytes one by one. Not inlined: rarely used, and long once unrolled.
inline __device__ __noinline__ std::uint64_t load_bytes(const std::byte* at, std::size_t count) {
  std::uint64_t value = 0;
#pragma unroll 1
  for (std::size_t i = 0; i < count; ++i)
    value |= static_cast<std::uint64_t>(at[i]) << (8 * i);
  return value;
}
inline __device__ __noinline__ void store_bytes(std::byte* at, std::size_t count,
                                                std::uint64_t value) {
#pragma unroll 1
  for (std::size_t i = 0; i < count; ++i)
    at[i] = static_cast<std::byte>(value >> (8 * i));
}

/// The eight bytes of `source` from `offset` (below `size_bytes`) on; those beyond it are zero.
__device__ inline std::uint64_t load_eight(const void* source, std::size_t size_bytes,
                                           std::size_t offset) {
  const std::byte* const at = static_cast<const std::byte*>(source) + offset;
  const std::size_t left = size_bytes - offset;
  if (left >= 8 && reinterpret_cast<std::uintptr_t>(at) % 8 == 0)
    return *reinterpret_cast<const std::uint64_t*>(at);
  return load_bytes(at, left < 8 ? left : 8);
}
__device__ inline void store_eight(void* target, std::size_t size_bytes, std::size_t offset,
                                   std::uint64_t value) {
  std::byte* const at = static_cast<std::byte*>(target) + offset;
  const std::size_t left = size_bytes - offset;
  if (left >= 8 && reinterpret_cast<std::uintptr_t>(at) % 8 == 0)
    *reinterpret_cast<std::uint64_t*>(at) = value;
  else
    store_bytes(at, left < 8 ? left : 8, value);
}

/// Enumerates the pairs of words of all other members, `size` threads at a time, without a division
/// per step.
class PairWalk {
public:
  __device__ PairWalk(unsigned rank, unsigned size, unsigned pairs, int n)
      : pairs_(pairs), others_(static_cast<unsigned>(n - 1)), step_others_(size / pairs),
        step_pairs_(size % pairs), other_(rank / pairs), pair_(rank % pairs) {}
  __device__ bool more() const { return other_ < others_; }
  __device__ void next() {
    other_ += step_others_;
    pair_ += step_pairs_;
    if (pair_ >= pairs_) {
      pair_ -= pairs_;
      ++other_;
    }
  }
  __device__ unsigned pair() const { return pair_; }
  /// Each member starts with its successor, to spread the load.
  __device__ int member(int me, int n) const {
    const int at = me + 1 + static_cast<int>(other_);
    return at < n ? at : at - n;
  }

private:
  unsigned pairs_, others_, step_others_, step_pairs_, other_, pair_;
};

/// One small collective, between begin() and end(). All threads of the scope make the calls.
template <class Scope>
class SmallCollective {
public:
  /// @param senders number of members whose data a buffer holds at a time: all, or 1 (the root)
  __device__ SmallCollective(const DeviceJob& job, const TeamView& team, int senders)
      : job_(job), team_(team), slot_pairs_(plan::slot_pairs(senders)) {}

  /// False if a member has not entered the previous collective before the timeout.
  __device__ bool begin() {
    Scope::sync(); // orders the other threads' stores to the source, and the epoch that the
                   // previous collective stored
    load_epoch();
    return wait_for_last();
  }

  /// Begins, and sends to every other member j `size_bytes` at source + j * stride_bytes, into slot
  /// `slot` of its buffer. Calls before_sending() when all members have entered the previous
  /// collective.
  template <class Call>
  __device__ bool begin_and_send(const void* source, std::size_t size_bytes,
                                 std::size_t stride_bytes, int slot, Call&& before_sending) {
    Scope::sync();
    load_epoch();
    PairWalk walk = walk_of(size_bytes);
    const auto load = [&] {
      const auto to = static_cast<std::size_t>(walk.member(team_.me, team_.n));
      return load_eight(static_cast<const std::byte*>(source) + to * stride_bytes, size_bytes,
                        walk.pair() * std::size_t{8});
    };
    // The first load of data overlaps with the load of the epoch.
    std::uint64_t data = walk.more() ? load() : 0;
    if (!wait_for_last())
      return false;
    before_sending();
    while (walk.more()) {
      const int to = walk.member(team_.me, team_.n);
      // Relaxed: each word carries its epoch.
      store_pair_relaxed(peer_flag(job_, words(slot, walk.pair()), team_.pe(to)),
                         {plan::word_of(static_cast<std::uint32_t>(data), epoch_),
                          plan::word_of(static_cast<std::uint32_t>(data >> 32), epoch_)});
      walk.next();
      if (walk.more())
        data = load();
    }
    return true;
  }
  __device__ bool begin_and_send(const void* source, std::size_t size_bytes,
                                 std::size_t stride_bytes, int slot) {
    return begin_and_send(source, size_bytes, stride_bytes, slot, [] {});
  }

  /// Waits for eight bytes of member `from`.
  __device__ std::uint64_t receive(int slot, unsigned pair, int from, bool& ok) {
    return finish(load_pair(slot, pair), slot, pair, from, ok);
  }
  /// The same, starting from `seen`, words that have been loaded already, perhaps before the data
  /// arrived.
  __device__ std::uint64_t finish(WordPair seen, int slot, unsigned pair, int from, bool& ok) {
    const auto poll = [&] {
      seen = load_pair_relaxed(words(slot, pair));
      return is_here(seen);
    };
    if (!is_here(seen) && !poll_until(job_, poll)) {
      report_wait(
          job_, team_.pe(from), static_cast<std::uint32_t>(epoch_),
          static_cast<std::uint32_t>(plan::is_of(seen.first, epoch_) ? seen.second : seen.first),
          words(slot, pair));
      ok = false;
    }
    return data_of(seen);
  }
  __device__ WordPair load_pair(int slot, unsigned pair) {
    return load_pair_relaxed(words(slot, pair));
  }

  /// Receives from every other member i, in slot i: `size_bytes` to target + i * size_bytes.
  __device__ bool receive_all(void* target, std::size_t size_bytes) {
    constexpr int at_once = 4; // loads in flight
    bool ok = true;
    for (PairWalk walk = walk_of(size_bytes); walk.more();) {
      WordPair seen[at_once];
      PairWalk ahead = walk;
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        if (ahead.more())
          seen[i] = load_pair(ahead.member(team_.me, team_.n), ahead.pair());
        ahead.next();
      }
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        if (walk.more()) {
          const int from = walk.member(team_.me, team_.n);
          const std::uint64_t data = finish(seen[i], from, walk.pair(), from, ok);
          if (ok)
            store_eight(static_cast<std::byte*>(target) +
                            static_cast<std::size_t>(from) * size_bytes,
                        size_bytes, walk.pair() * std::size_t{8}, data);
        }
        walk.next();
      }
    }
    return ok;
  }

  /// Sets the entered flags at all others: for collectives in which not every member receives from
  /// every other.
  __device__ bool set_entered_flags() {
    bool ok = true;
    FlagRelease<Scope> release;
    for (int i = Scope::rank(); i < team_.n; i += Scope::size())
      if (i != team_.me) // release: after this member's reads of the previous collective
        ok = set_flag(job_, &team_.cells->entered[team_.me], epoch_, team_.pe(i), release) && ok;
    return ok;
  }

  /// @param received_from_all data of every other member has arrived
  __device__ bool end(bool ok, bool received_from_all) {
    ok = Scope::all(ok); // all threads have read the epochs and received their data
    if (Scope::rank() == 0) {
      team_.cells->collective_epoch = epoch_;
      if (received_from_all)
        team_.cells->entered_epoch = epoch_;
    }
    Scope::sync();
    return ok;
  }

private:
  __device__ PairWalk walk_of(std::size_t size_bytes) const {
    return {static_cast<unsigned>(Scope::rank()), static_cast<unsigned>(Scope::size()),
            static_cast<unsigned>(plan::pairs_of(size_bytes)), team_.n};
  }
  __device__ void load_epoch() {
    const std::uint64_t last = team_.cells->collective_epoch;
    received_epoch_ = team_.cells->entered_epoch;
    epoch_ = last + 1;
  }
  __device__ bool wait_for_last() {
    if (!plan::must_wait(received_epoch_, epoch_))
      return true;
    bool ok = true;
    for (int i = Scope::rank(); i < team_.n; i += Scope::size()) {
      bool in_time = true;
      if (i != team_.me)
        wait_at_least(job_, &team_.cells->entered[i], epoch_ - 1, team_.pe(i), in_time);
      ok = ok && in_time;
    }
    return Scope::all(ok);
  }
  __device__ std::uint64_t* words(int slot, unsigned pair) const {
    std::uint64_t* const half = team_.cells->messages[plan::half_of(epoch_)];
    return half + 2 * (static_cast<std::uint64_t>(slot) * slot_pairs_ + pair);
  }
  __device__ bool is_here(WordPair seen) const {
    return plan::is_of(seen.first, epoch_) && plan::is_of(seen.second, epoch_);
  }
  static __device__ std::uint64_t data_of(WordPair seen) {
    return plan::data_of(seen.first) | static_cast<std::uint64_t>(plan::data_of(seen.second)) << 32;
  }

  const DeviceJob& job_;
  const TeamView& team_;
  std::uint64_t slot_pairs_;
  std::uint64_t epoch_ = 0, received_epoch_ = 0;
};

/// dest + i * size_bytes = member i's data at source + my index * stride_bytes.
template <class Scope>
__device__ inline bool gather_small(const DeviceJob& job, const TeamView& team, void* dest,
                                    const void* source, std::size_t size_bytes,
                                    std::size_t stride_bytes) {
  SmallCollective<Scope> collective(job, team, team.n);
  if (!collective.begin_and_send(source, size_bytes, stride_bytes, team.me))
    return false;
  const auto me = static_cast<std::size_t>(team.me);
  std::byte* const to = static_cast<std::byte*>(dest) + me * size_bytes;
  const std::byte* const from = static_cast<const std::byte*>(source) + me * stride_bytes;
  if (to != from) // in place: other threads may still send from the source
    copy<Scope, Local>(to, from, size_bytes);
  return collective.end(collective.receive_all(dest, size_bytes), true);
}

template <class Scope>
inline __device__ __noinline__ bool broadcast_small(const DeviceJob& job, const TeamView& team,
                                                    void* dest, const void* source,
                                                    std::size_t size_bytes, int root) {
  SmallCollective<Scope> collective(job, team, 1);
  bool ok = true;
  if (team.me == root) {
    // The flags are set before the data is sent: their release would wait until the data has
    // arrived.
    if (!collective.begin_and_send(source, size_bytes, 0, 0,
                                   [&] { ok = collective.set_entered_flags(); }))
      return false;
    if (dest != source)
      copy<Scope, Local>(dest, source, size_bytes);
  } else {
    if (!collective.begin())
      return false;
    ok = collective.set_entered_flags();
    const auto pairs = static_cast<unsigned>(plan::pairs_of(size_bytes));
    for (auto pair = static_cast<unsigned>(Scope::rank()); pair < pairs;
         pair += static_cast<unsigned>(Scope::size())) {
      const std::uint64_t data = collective.receive(0, pair, root, ok);
      if (ok)
        store_eight(dest, size_bytes, pair * std::size_t{8}, data);
    }
  }
  return collective.end(ok, false);
}

/// Each member reduces in member order what all have sent to it: bitwise identical results.
/// `stride_bytes` 0: one result for all; size_bytes: part j is sent to member j, which reduces it.
template <class Scope, class T>
__device__ inline bool reduce_small(const DeviceJob& job, const TeamView& team, void* dest,
                                    const void* source, std::size_t size_bytes,
                                    std::size_t stride_bytes, ReduceOp op) {
  SmallCollective<Scope> collective(job, team, team.n);
  if (!collective.begin_and_send(source, size_bytes, stride_bytes, team.me))
    return false;
  Scope::sync(); // `dest` may be `source`, from which other threads have sent this thread's part
  const std::byte* const own_block =
      static_cast<const std::byte*>(source) + static_cast<std::size_t>(team.me) * stride_bytes;
  const auto pairs = static_cast<unsigned>(plan::pairs_of(size_bytes));
  constexpr int at_once = 4; // loads in flight
  bool ok = true;
  for (auto pair = static_cast<unsigned>(Scope::rank()); pair < pairs;
       pair += static_cast<unsigned>(Scope::size())) {
    Accumulator<T, std::uint64_t> sum(0);
    for (int first = 0; first < team.n; first += at_once) {
      WordPair seen[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i)
        if (first + i < team.n && first + i != team.me)
          seen[i] = collective.load_pair(first + i, pair);
#pragma unroll
      for (int i = 0; i < at_once; ++i)
        if (first + i < team.n) {
          const std::uint64_t data =
              first + i == team.me ? load_eight(own_block, size_bytes, pair * std::size_t{8})
                                   : collective.finish(seen[i], first + i, pair, first + i, ok);
          if (first + i == 0)
            sum = Accumulator<T, std::uint64_t>(data);
          else
            sum.take(op, data);
        }
    }
    if (ok)
      store_eight(dest, size_bytes, pair * std::size_t{8}, sum.result());
  }
  return collective.end(ok, true);
}

} // namespace shmemctl::device::detail
