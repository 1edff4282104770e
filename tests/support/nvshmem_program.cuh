// The programs of rma_program.h and collective_calls.h by NVSHMEM's names: device code. Who
// includes it has declared the names, by nvshmem.h or, on threads of the host, nvshmem_on_host.h.
#pragma once

#include "tests/support/collective_program.cuh"
#include "tests/support/rma_program.h"

namespace shmemctl::test {

/// The names of a scope. `reduce` and `reducescatter` are of Number.
template <class Scope>
struct Names;

#define SHMEMCTL_TEST_NAMES(SCOPE, X, S)                                                           \
  template <>                                                                                      \
  struct Names<device::SCOPE> {                                                                    \
    static __device__ void put(void* to, const void* from, std::size_t bytes, int pe) {            \
      if (bytes % 16 == 0)                                                                         \
        nvshmem##X##_put128##S(to, from, bytes / 16, pe);                                          \
      else if (bytes % 4 == 0)                                                                     \
        nvshmem##X##_float_put##S(static_cast<float*>(to), static_cast<const float*>(from),        \
                                  bytes / 4, pe);                                                  \
      else                                                                                         \
        nvshmem##X##_putmem##S(to, from, bytes, pe);                                               \
    }                                                                                              \
    static __device__ void put_nbi(void* to, const void* from, std::size_t bytes, int pe) {        \
      if (bytes % 8 == 0)                                                                          \
        nvshmem##X##_double_put_nbi##S(static_cast<double*>(to), static_cast<const double*>(from), \
                                       bytes / 8, pe);                                             \
      else if (bytes % 2 == 0)                                                                     \
        nvshmem##X##_put16_nbi##S(to, from, bytes / 2, pe);                                        \
      else                                                                                         \
        nvshmem##X##_putmem_nbi##S(to, from, bytes, pe);                                           \
    }                                                                                              \
    static __device__ void get(void* to, const void* from, std::size_t bytes, int pe) {            \
      if (bytes % 8 == 0)                                                                          \
        nvshmem##X##_get64##S(to, from, bytes / 8, pe);                                            \
      else if (bytes % 2 == 0)                                                                     \
        nvshmem##X##_short_get##S(static_cast<short*>(to), static_cast<const short*>(from),        \
                                  bytes / 2, pe);                                                  \
      else                                                                                         \
        nvshmem##X##_getmem##S(to, from, bytes, pe);                                               \
    }                                                                                              \
    static __device__ void get_nbi(void* to, const void* from, std::size_t bytes, int pe) {        \
      if (bytes % 4 == 0)                                                                          \
        nvshmem##X##_get32_nbi##S(to, from, bytes / 4, pe);                                        \
      else                                                                                         \
        nvshmem##X##_char_get_nbi##S(static_cast<char*>(to), static_cast<const char*>(from),       \
                                     bytes, pe);                                                   \
    }                                                                                              \
    static __device__ void iput(void* to, const void* from, std::ptrdiff_t dst,                    \
                                std::ptrdiff_t sst, std::size_t count, int pe) {                   \
      nvshmem##X##_uint32_iput##S(static_cast<std::uint32_t*>(to),                                 \
                                  static_cast<const std::uint32_t*>(from), dst, sst, count, pe);   \
    }                                                                                              \
    static __device__ void iget(void* to, const void* from, std::ptrdiff_t dst,                    \
                                std::ptrdiff_t sst, std::size_t count, int pe) {                   \
      nvshmem##X##_iget32##S(to, from, dst, sst, count, pe);                                       \
    }                                                                                              \
    static __device__ void iput_wide(void* to, const void* from, std::ptrdiff_t dst,               \
                                     std::ptrdiff_t sst, std::size_t count, int pe) {              \
      nvshmem##X##_iput128##S(to, from, dst, sst, count, pe);                                      \
    }                                                                                              \
    static __device__ void iget_wide(void* to, const void* from, std::ptrdiff_t dst,               \
                                     std::ptrdiff_t sst, std::size_t count, int pe) {              \
      nvshmem##X##_iget128##S(to, from, dst, sst, count, pe);                                      \
    }                                                                                              \
    static __device__ void put_signal_nbi(void* to, const void* from, std::size_t bytes,           \
                                          std::uint64_t* signal, std::uint64_t value, int pe) {    \
      nvshmem##X##_putmem_signal_nbi##S(to, from, bytes, signal, value, NVSHMEM_SIGNAL_ADD, pe);   \
    }                                                                                              \
    static __device__ void put_signal(void* to, const void* from, std::size_t bytes,               \
                                      std::uint64_t* signal, std::uint64_t value, int pe) {        \
      if (bytes == 8)                                                                              \
        nvshmem##X##_uint64_put_signal##S(static_cast<std::uint64_t*>(to),                         \
                                          static_cast<const std::uint64_t*>(from), 1, signal,      \
                                          value, NVSHMEM_SIGNAL_SET, pe);                          \
      else                                                                                         \
        nvshmem##X##_put8_signal##S(to, from, bytes, signal, value, NVSHMEM_SIGNAL_SET, pe);       \
    }                                                                                              \
    static __device__ void barrier_all() { nvshmem##X##_barrier_all##S(); }                        \
    static __device__ int barrier(int team) { return nvshmem##X##_barrier##S(team); }              \
    static __device__ int broadcast(int team, void* dest, const void* source, std::size_t bytes,   \
                                    int root) {                                                    \
      return nvshmem##X##_broadcastmem##S(team, dest, source, bytes, root);                        \
    }                                                                                              \
    static __device__ int fcollect(int team, void* dest, const void* source, std::size_t bytes) {  \
      if (bytes % 8 == 0)                                                                          \
        return nvshmem##X##_ulonglong_fcollect##S(team, static_cast<unsigned long long*>(dest),    \
                                                  static_cast<const unsigned long long*>(source),  \
                                                  bytes / 8);                                      \
      return nvshmem##X##_fcollectmem##S(team, dest, source, bytes);                               \
    }                                                                                              \
    static __device__ int alltoall(int team, void* dest, const void* source, std::size_t bytes) {  \
      if (bytes % 4 == 0)                                                                          \
        return nvshmem##X##_int_alltoall##S(team, static_cast<int*>(dest),                         \
                                            static_cast<const int*>(source), bytes / 4);           \
      return nvshmem##X##_alltoallmem##S(team, dest, source, bytes);                               \
    }                                                                                              \
  };
SHMEMCTL_TEST_NAMES(Thread, , )
SHMEMCTL_TEST_NAMES(Warp, x, _warp)
SHMEMCTL_TEST_NAMES(Block, x, _block)
#undef SHMEMCTL_TEST_NAMES

/// Reductions of numbers that the device API knows as Number.
template <class Scope, class Number>
struct ReductionNames;

#define SHMEMCTL_TEST_CASE(X, S, N, T, VALUE, OP)                                                  \
  case device::ReduceOp::VALUE:                                                                    \
    return scatter                                                                                 \
               ? nvshmem##X##_##N##_##OP##_reducescatter##S(                                       \
                     team, reinterpret_cast<T*>(dest), reinterpret_cast<const T*>(source), count)  \
               : nvshmem##X##_##N##_##OP##_reduce##S(team, reinterpret_cast<T*>(dest),             \
                                                     reinterpret_cast<const T*>(source), count);
#define SHMEMCTL_TEST_NUMBER(SCOPE, X, S, NUMBER, N, T, BITS)                                      \
  template <>                                                                                      \
  struct ReductionNames<device::SCOPE, NUMBER> {                                                   \
    static __device__ int call(int team, NUMBER* dest, const NUMBER* source, std::size_t count,    \
                               device::ReduceOp op, bool scatter) {                                \
      switch (op) {                                                                                \
        SHMEMCTL_TEST_CASE(X, S, N, T, sum, sum)                                                   \
        SHMEMCTL_TEST_CASE(X, S, N, T, min, min)                                                   \
        SHMEMCTL_TEST_CASE(X, S, N, T, max, max)                                                   \
        SHMEMCTL_TEST_CASE(X, S, N, T, prod, prod)                                                 \
        BITS(X, S, N, T)                                                                           \
      }                                                                                            \
      return -1;                                                                                   \
    }                                                                                              \
  };
#define SHMEMCTL_TEST_BITS(X, S, N, T)                                                             \
  SHMEMCTL_TEST_CASE(X, S, N, T, bit_and, and)                                                     \
  SHMEMCTL_TEST_CASE(X, S, N, T, bit_or, or)                                                       \
  SHMEMCTL_TEST_CASE(X, S, N, T, bit_xor, xor)
#define SHMEMCTL_TEST_NO_BITS(X, S, N, T)                                                          \
  default:                                                                                         \
    break;
#define SHMEMCTL_TEST_NUMBERS(SCOPE, X, S)                                                         \
  SHMEMCTL_TEST_NUMBER(SCOPE, X, S, std::int8_t, int8, std::int8_t, SHMEMCTL_TEST_BITS)            \
  SHMEMCTL_TEST_NUMBER(SCOPE, X, S, std::int16_t, int16, std::int16_t, SHMEMCTL_TEST_BITS)         \
  SHMEMCTL_TEST_NUMBER(SCOPE, X, S, std::int32_t, int32, std::int32_t, SHMEMCTL_TEST_BITS)         \
  SHMEMCTL_TEST_NUMBER(SCOPE, X, S, std::int64_t, int64, std::int64_t, SHMEMCTL_TEST_BITS)         \
  SHMEMCTL_TEST_NUMBER(SCOPE, X, S, std::uint8_t, uchar, unsigned char, SHMEMCTL_TEST_BITS)        \
  SHMEMCTL_TEST_NUMBER(SCOPE, X, S, std::uint16_t, ushort, unsigned short, SHMEMCTL_TEST_BITS)     \
  SHMEMCTL_TEST_NUMBER(SCOPE, X, S, std::uint32_t, uint, unsigned, SHMEMCTL_TEST_BITS)             \
  SHMEMCTL_TEST_NUMBER(SCOPE, X, S, std::uint64_t, ulonglong, unsigned long long,                  \
                       SHMEMCTL_TEST_BITS)                                                         \
  SHMEMCTL_TEST_NUMBER(SCOPE, X, S, float, float, float, SHMEMCTL_TEST_NO_BITS)                    \
  SHMEMCTL_TEST_NUMBER(SCOPE, X, S, double, double, double, SHMEMCTL_TEST_NO_BITS)                 \
  SHMEMCTL_TEST_NUMBER(SCOPE, X, S, device::Bf16, bfloat16, __nv_bfloat16, SHMEMCTL_TEST_NO_BITS)  \
  SHMEMCTL_TEST_NUMBER(SCOPE, X, S, device::Fp16, half, __half, SHMEMCTL_TEST_NO_BITS)
SHMEMCTL_TEST_NUMBERS(Thread, , )
SHMEMCTL_TEST_NUMBERS(Warp, x, _warp)
SHMEMCTL_TEST_NUMBERS(Block, x, _block)
#undef SHMEMCTL_TEST_NUMBERS
#undef SHMEMCTL_TEST_NO_BITS
#undef SHMEMCTL_TEST_BITS
#undef SHMEMCTL_TEST_NUMBER
#undef SHMEMCTL_TEST_CASE

/// Called by one thread: all calls that fetch; NVSHMEM's return the old value.
__device__ inline void run_own_atomic_by_name(std::byte* heap, const RmaStep& step) {
  auto* const word = reinterpret_cast<std::uint64_t*>(heap + step.to);
  auto* const fetch = reinterpret_cast<std::uint64_t*>(heap + step.from);
  switch (static_cast<OwnAtomic>(step.size)) {
  case OwnAtomic::swap:
    *fetch = nvshmem_uint64_atomic_swap(word, step.value, step.pe);
    break;
  case OwnAtomic::compare_swap:
    *fetch = nvshmem_uint64_atomic_compare_swap(word, step.signal, step.value, step.pe);
    break;
  case OwnAtomic::add:
    *fetch = nvshmem_uint64_atomic_fetch_add(word, step.value, step.pe);
    break;
  case OwnAtomic::inc:
    *fetch = nvshmem_uint64_atomic_fetch_inc(word, step.pe);
    break;
  case OwnAtomic::bit_and:
    *fetch = nvshmem_uint64_atomic_fetch_and(word, step.value, step.pe);
    break;
  case OwnAtomic::bit_or:
    *fetch = nvshmem_uint64_atomic_fetch_or(word, step.value, step.pe);
    break;
  case OwnAtomic::bit_xor:
    *fetch = nvshmem_uint64_atomic_fetch_xor(word, step.value, step.pe);
    break;
  default:
    *fetch = nvshmem_uint64_atomic_fetch(word, step.pe);
    break;
  }
}

__device__ inline void put_value_by_name(std::byte* to, const RmaStep& step) {
  if (step.size == 1)
    nvshmem_uint8_p(reinterpret_cast<std::uint8_t*>(to), static_cast<std::uint8_t>(step.value),
                    step.pe);
  if (step.size == 2)
    nvshmem_ushort_p(reinterpret_cast<unsigned short*>(to), static_cast<unsigned short>(step.value),
                     step.pe);
  if (step.size == 4)
    nvshmem_uint32_p(reinterpret_cast<std::uint32_t*>(to), static_cast<std::uint32_t>(step.value),
                     step.pe);
  if (step.size == 8)
    nvshmem_uint64_p(reinterpret_cast<std::uint64_t*>(to), step.value, step.pe);
}

/// What only one thread does. False: not one of these.
__device__ inline bool run_by_one_thread(std::byte* heap, const RmaStep& step) {
  std::byte* const to = heap + step.to;
  switch (step.kind) {
  case RmaStep::put_value:
    put_value_by_name(to, step);
    return true;
  case RmaStep::atomic_add:
    nvshmem_uint64_atomic_add(reinterpret_cast<std::uint64_t*>(to), step.value, step.pe);
    return true;
  case RmaStep::atomic_inc:
    nvshmem_int_atomic_inc(reinterpret_cast<int*>(to), step.pe);
    return true;
  case RmaStep::atomic_xor:
    nvshmem_uint_atomic_xor(reinterpret_cast<unsigned*>(to), static_cast<unsigned>(step.value),
                            step.pe);
    return true;
  case RmaStep::atomic_or:
    nvshmem_uint64_atomic_fetch_or(reinterpret_cast<std::uint64_t*>(to), step.value, step.pe);
    return true;
  case RmaStep::atomic_and:
    nvshmem_uint64_atomic_and(reinterpret_cast<std::uint64_t*>(to), step.value, step.pe);
    return true;
  case RmaStep::own_atomic:
    run_own_atomic_by_name(heap, step);
    return true;
  case RmaStep::atomic_swap:
    nvshmem_uint64_atomic_swap(reinterpret_cast<std::uint64_t*>(to), step.value, step.pe);
    return true;
  default:
    return false;
  }
}

/// Called by one scope of each PE, at its `heap`.
template <class Scope>
__device__ inline void run_program_by_names(std::byte* heap, const RmaStep* steps, int count) {
  using N = Names<Scope>;
  for (int i = 0; i < count; ++i) {
    const RmaStep step = steps[i];
    std::byte* const to = heap + step.to;
    const std::byte* const from = heap + step.from;
    auto* const signal = reinterpret_cast<std::uint64_t*>(heap + step.signal);
    switch (step.kind) {
    case RmaStep::put:
      N::put(to, from, step.size, step.pe);
      break;
    case RmaStep::put_nbi:
      N::put_nbi(to, from, step.size, step.pe);
      break;
    case RmaStep::get:
      N::get(to, from, step.size, step.pe);
      break;
    case RmaStep::get_nbi:
      N::get_nbi(to, from, step.size, step.pe);
      break;
    case RmaStep::iput:
      N::iput(to, from, step.to_stride, step.from_stride, step.size, step.pe);
      break;
    case RmaStep::iget:
      N::iget(to, from, step.to_stride, step.from_stride, step.size, step.pe);
      break;
    case RmaStep::iput_wide:
      N::iput_wide(to, from, step.to_stride, step.from_stride, step.size, step.pe);
      break;
    case RmaStep::iget_wide:
      N::iget_wide(to, from, step.to_stride, step.from_stride, step.size, step.pe);
      break;
    case RmaStep::put_signal_add:
      N::put_signal_nbi(to, from, step.size, signal, step.value, step.pe);
      break;
    case RmaStep::put_signal_beside:
      N::put_signal(to, from, step.size, signal, step.value, step.pe);
      break;
    case RmaStep::wait_signal:
      nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, step.value);
      Scope::sync();
      break;
    case RmaStep::wait_count:
      nvshmem_uint64_wait_until(signal, NVSHMEM_CMP_GE, step.value);
      Scope::sync();
      break;
    case RmaStep::fence:
      Scope::sync();
      nvshmem_fence();
      Scope::sync();
      break;
    case RmaStep::barrier:
    case RmaStep::kinds:
      N::barrier_all();
      break;
    default:
      if (Scope::rank() == 0)
        run_by_one_thread(heap, step);
      break;
    }
  }
  Scope::sync();
  nvshmem_quiet();
  Scope::sync();
}

/// Broadcast, fcollect, alltoall, reduce and reducescatter of a list of calls; others are left out.
/// By one scope of each PE, in `heap_bytes` of symmetric memory at `heap`. `wrong` counts results
/// that are not as they should be. Teams are 0 to 2, as numbers; `n_teams` fewer of them.
template <class Scope>
class CollectivesByNames {
public:
  __device__ CollectivesByNames(std::byte* heap, std::size_t heap_bytes, const Call* calls,
                                int count, std::uint64_t* wrong, int n_teams = 3)
      : heap_(heap), heap_bytes_(heap_bytes), calls_(calls), count_(count), wrong_(wrong),
        n_teams_(n_teams) {}

  __device__ void run() {
    for (int step = 0; step < count_ && !failed_; ++step) {
      Call call = calls_[step];
      call.team %= n_teams_;
      me_ = nvshmem_team_my_pe(call.team);
      if (me_ < 0)
        continue;
      n_ = nvshmem_team_n_pes(call.team);
      if (call.kind == Call::sync)
        done(Names<Scope>::barrier(call.team));
      else if (call.kind == Call::broadcast || call.kind == Call::fcollect ||
               call.kind == Call::alltoall)
        move(call, step);
      else if (call.kind == Call::reduce || call.kind == Call::reducescatter)
        reduce_type(call, step);
    }
  }

private:
  __device__ static std::size_t rank() { return static_cast<std::size_t>(Scope::rank()); }
  __device__ static std::size_t all() { return static_cast<std::size_t>(Scope::size()); }
  __device__ void expect(bool right) {
    if (!right)
      device::atomic_word_add(wrong_, std::uint64_t{1});
  }
  /// Checks the status of a call, which is the same in all threads of the scope. A scope that has
  /// failed does not go on.
  __device__ void done(int status) {
    failed_ = failed_ || status != 0;
    expect(status == 0);
  }
  __device__ std::size_t members() const { return static_cast<std::size_t>(n_); }
  __device__ int pe_of(const Call& call, int member) const {
    return nvshmem_team_translate_pe(call.team, member, NVSHMEM_TEAM_WORLD);
  }

  __device__ __noinline__ void move(const Call& call, int step) {
    std::byte* const dest = heap_ + call.to;
    std::byte* const source = heap_ + heap_bytes_ / 2 + call.from;
    const bool to_each = call.kind == Call::alltoall;
    for (std::size_t i = rank(); i < call.size * (to_each ? members() : 1); i += all())
      source[i] = static_cast<std::byte>(source_byte(step, nvshmem_my_pe(), i));
    Scope::sync();
    const int root = call.root % n_;
    int failed = 0;
    if (call.kind == Call::broadcast)
      failed = Names<Scope>::broadcast(call.team, dest, source, call.size, root);
    else if (call.kind == Call::fcollect)
      failed = Names<Scope>::fcollect(call.team, dest, source, call.size);
    else
      failed = Names<Scope>::alltoall(call.team, dest, source, call.size);
    done(failed);
    Scope::sync();
    const std::size_t from = to_each ? static_cast<std::size_t>(me_) * call.size : 0;
    const std::size_t parts = call.kind == Call::broadcast ? 1 : members();
    for (std::size_t i = rank(); i < parts * call.size; i += all()) {
      const auto member = static_cast<int>(i / call.size);
      const int pe = pe_of(call, call.kind == Call::broadcast ? root : member);
      expect(static_cast<std::uint8_t>(dest[i]) == source_byte(step, pe, from + i % call.size));
    }
    Scope::sync();
  }

  __device__ void reduce_type(const Call& call, int step) {
    switch (static_cast<Call::Type>(call.type)) {
    case Call::int64:
      return reduce<std::int64_t>(call, step);
    case Call::float32:
      return reduce<float>(call, step);
    case Call::bf16:
      return reduce<device::Bf16>(call, step);
    case Call::fp16:
      return reduce<device::Fp16>(call, step);
    case Call::float64:
      return reduce<double>(call, step);
    case Call::uint8:
      return reduce<std::uint8_t>(call, step);
    case Call::int8:
      return reduce<std::int8_t>(call, step);
    case Call::int16:
      return reduce<std::int16_t>(call, step);
    case Call::uint16:
      return reduce<std::uint16_t>(call, step);
    case Call::uint32:
      return reduce<std::uint32_t>(call, step);
    case Call::uint64:
      return reduce<std::uint64_t>(call, step);
    default:
      return reduce<std::int32_t>(call, step);
    }
  }

  template <class T>
  __device__ __noinline__ void reduce(const Call& call, int step) {
    auto* const dest = reinterpret_cast<T*>(heap_ + call.to / 16 * sizeof(T));
    auto* const source = reinterpret_cast<T*>(heap_ + heap_bytes_ / 2 + call.from / 16 * sizeof(T));
    const bool scatter = call.kind == Call::reducescatter;
    for (std::size_t i = rank(); i < call.size * (scatter ? members() : 1); i += all())
      source[i] =
          number_of<T>(static_cast<Model<T>>(source_number<T>(step, nvshmem_my_pe(), i, call.op)));
    Scope::sync();
    T* const to = call.root == 0 && !scatter ? source : dest; // in place, too
    done(ReductionNames<Scope, T>::call(call.team, to, source, call.size, call.op, scatter));
    Scope::sync();
    for (std::size_t i = rank(); i < call.size; i += all()) {
      const std::size_t at = scatter ? static_cast<std::size_t>(me_) * call.size + i : i;
      const auto number = [&](int member) {
        return static_cast<Model<T>>(source_number<T>(step, pe_of(call, member), at, call.op));
      };
      Model<T> expected = number(0);
      for (int member = 1; member < n_; ++member)
        expected = combined(call.op, expected, number(member));
      expect(is_number(to[i], expected));
    }
    Scope::sync();
  }

  std::byte* heap_;
  std::size_t heap_bytes_;
  const Call* calls_;
  int count_;
  std::uint64_t* wrong_;
  int n_teams_, me_ = 0, n_ = 0;
  bool failed_ = false;
};

} // namespace shmemctl::test
