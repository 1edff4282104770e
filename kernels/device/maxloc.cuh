// Reduction to the largest value and its location: pairs of doubles, of which the first (the value)
// is compared.
#pragma once

#include "kernels/device/collectives.cuh"

namespace shmemctl::device {

namespace detail {

struct alignas(16) ValueAndPlace {
  double value, place;
};

/// Of pairs with equal values, that of the last member in the team wins, as in NVSHMEM, which
/// combines two pairs by (a.x > b.x ? a : b).
template <class Raw>
class Accumulator<ValueAndPlace, Raw> {
public:
  static_assert(sizeof(Raw) == sizeof(ValueAndPlace), "one pair at a time");
  __device__ explicit Accumulator(Raw first) { memcpy(&best_, &first, sizeof best_); }
  __device__ void take(ReduceOp, Raw next) {
    ValueAndPlace other;
    memcpy(&other, &next, sizeof other);
    if (!(best_.value > other.value))
      best_ = other;
  }
  __device__ Raw result() const {
    Raw raw;
    memcpy(&raw, &best_, sizeof raw);
    return raw;
  }

private:
  ValueAndPlace best_;
};

/// The reduction templates find this overload by argument-dependent lookup.
__device__ inline ValueAndPlace load_fresh(const ValueAndPlace* at) {
  const int4 raw = load_relaxed(reinterpret_cast<const int4*>(at));
  ValueAndPlace pair;
  memcpy(&pair, &raw, sizeof pair);
  return pair;
}

} // namespace detail

/// dest[k] = the pair with the largest first number among source[k] of all members. `dest` and
/// `source` are aligned to 16 bytes. In place allowed. Unlike reduce(), it has no algorithm for
/// small data.
template <class Scope>
__device__ inline bool reduce_maxloc(const DeviceJob& job, int team_number, void* dest,
                                     const void* source, std::size_t count) {
  using Pair = detail::ValueAndPlace;
  const TeamView team = team_view(job, team_number);
  if (!detail::can_collect(job, team_number, team))
    return false;
  if (count == 0)
    return true;
  auto* const to = static_cast<Pair*>(dest);
  const auto* const from = static_cast<const Pair*>(source);
  if (detail::unmapped_member(job, team) >= 0)
    return detail::reduce_over_network<Scope, Pair>(job, team, to, from, count, ReduceOp::max,
                                                    false, {0, 1});
  return detail::reduce_large<Scope, Pair>(job, team, to, from, count, ReduceOp::max, false,
                                           {0, 1});
}

} // namespace shmemctl::device
