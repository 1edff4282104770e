// Reduction to the largest value and where it is: pairs of doubles, of which the first is compared.
#pragma once

#include "kernels/device/collectives.cuh"

namespace shmemctl::device {

namespace detail {

struct alignas(16) ValueAndPlace {
  double value, place;
};

/// Of equal values, that of the member that comes last in the team, as NVSHMEM's reduction of one
/// and of another, (a.x > b.x ? a : b), has it.
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

/// Found by the templates of reductions through the type's namespace.
__device__ inline ValueAndPlace load_fresh(const ValueAndPlace* at) {
  const int4 raw = load_relaxed(reinterpret_cast<const int4*>(at));
  ValueAndPlace pair;
  memcpy(&pair, &raw, sizeof pair);
  return pair;
}

} // namespace detail

/// dest[k] = the pair with the largest first number among source[k] of all members. `dest` and
/// `source` are aligned to 16 bytes. In place allowed. Never small, in the sense of the other
/// collectives.
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
