// What runs the programs of rma_program.h: device code.
#pragma once

#include "kernels/shmem_device.cuh"
#include "tests/support/rma_program.h"

namespace shmemctl::test {

/// 16 bytes, aligned to 8.
struct WideValue {
  std::uint64_t halves[2];
};

/// Called by one thread: the calls that fetch and do not wait; the old value is known after the
/// quiet.
__device__ inline void run_own_atomic(const DeviceJob& job, const RmaStep& step) {
  auto* const word = reinterpret_cast<std::uint64_t*>(job.heap + step.to);
  auto* const fetch = reinterpret_cast<std::uint64_t*>(job.heap + step.from);
  switch (static_cast<OwnAtomic>(step.size)) {
  case OwnAtomic::swap:
    device::atomic_swap_nbi(job, fetch, word, step.value, step.pe);
    break;
  case OwnAtomic::compare_swap:
    device::atomic_compare_swap_nbi(job, fetch, word, step.signal, step.value, step.pe);
    break;
  case OwnAtomic::add:
    device::atomic_fetch_add_nbi(job, fetch, word, step.value, step.pe);
    break;
  case OwnAtomic::inc:
    device::atomic_fetch_inc_nbi(job, fetch, word, step.pe);
    break;
  case OwnAtomic::bit_and:
    device::atomic_fetch_and_nbi(job, fetch, word, step.value, step.pe);
    break;
  case OwnAtomic::bit_or:
    device::atomic_fetch_or_nbi(job, fetch, word, step.value, step.pe);
    break;
  case OwnAtomic::bit_xor:
    device::atomic_fetch_xor_nbi(job, fetch, word, step.value, step.pe);
    break;
  default:
    device::atomic_fetch_nbi(job, fetch, static_cast<const std::uint64_t*>(word), step.pe);
    break;
  }
}

/// Called by one scope of each PE. False if a wait gave up.
template <class Scope>
__device__ inline bool run_program(const DeviceJob& job, const RmaStep* steps, int count) {
  for (int i = 0; i < count; ++i) {
    const RmaStep step = steps[i];
    std::byte* const to = job.heap + step.to;
    const std::byte* const from = job.heap + step.from;
    auto* const signal = reinterpret_cast<std::uint64_t*>(job.heap + step.signal);
    const bool one = Scope::rank() == 0;
    bool ok = true;
    switch (step.kind) {
    case RmaStep::put:
      device::put<Scope>(job, to, from, step.size, step.pe);
      break;
    case RmaStep::put_nbi:
      device::put_nbi<Scope>(job, to, from, step.size, step.pe);
      break;
    case RmaStep::get:
      device::get<Scope>(job, to, from, step.size, step.pe);
      break;
    case RmaStep::get_nbi:
      device::get_nbi<Scope>(job, to, from, step.size, step.pe);
      break;
    case RmaStep::put_value:
      if (one && step.size == 1)
        device::put_value(job, reinterpret_cast<std::uint8_t*>(to),
                          static_cast<std::uint8_t>(step.value), step.pe);
      if (one && step.size == 2)
        device::put_value(job, reinterpret_cast<std::uint16_t*>(to),
                          static_cast<std::uint16_t>(step.value), step.pe);
      if (one && step.size == 4)
        device::put_value(job, reinterpret_cast<std::uint32_t*>(to),
                          static_cast<std::uint32_t>(step.value), step.pe);
      if (one && step.size == 8)
        device::put_value(job, reinterpret_cast<std::uint64_t*>(to), step.value, step.pe);
      break;
    case RmaStep::iput:
      device::iput<Scope>(job, reinterpret_cast<std::uint32_t*>(to),
                          reinterpret_cast<const std::uint32_t*>(from), step.to_stride,
                          step.from_stride, step.size, step.pe);
      break;
    case RmaStep::iget:
      device::iget<Scope>(job, reinterpret_cast<std::uint32_t*>(to),
                          reinterpret_cast<const std::uint32_t*>(from), step.to_stride,
                          step.from_stride, step.size, step.pe);
      break;
    case RmaStep::iput_wide:
      device::iput<Scope>(job, reinterpret_cast<WideValue*>(to),
                          reinterpret_cast<const WideValue*>(from), step.to_stride,
                          step.from_stride, step.size, step.pe);
      break;
    case RmaStep::iget_wide:
      device::iget<Scope>(job, reinterpret_cast<WideValue*>(to),
                          reinterpret_cast<const WideValue*>(from), step.to_stride,
                          step.from_stride, step.size, step.pe);
      break;
    case RmaStep::put_signal_add:
      device::put_signal_nbi<Scope>(job, to, from, step.size, signal, step.value, step.pe,
                                    device::SignalOp::add);
      break;
    case RmaStep::put_signal_beside:
      device::put_signal<Scope>(job, to, from, step.size, signal, step.value, step.pe);
      break;
    case RmaStep::wait_signal:
      ok = device::signal_wait_until<Scope>(job, signal, device::Compare::equal, step.value,
                                            step.pe);
      break;
    case RmaStep::wait_count:
      ok = device::signal_wait_until<Scope>(job, signal, device::Compare::greater_equal, step.value,
                                            step.pe);
      break;
    case RmaStep::atomic_add:
      if (one)
        device::atomic_add(job, reinterpret_cast<std::uint64_t*>(to), step.value, step.pe);
      break;
    case RmaStep::atomic_inc:
      if (one)
        device::atomic_fetch_inc(job, reinterpret_cast<std::int32_t*>(to), step.pe);
      break;
    case RmaStep::atomic_xor:
      if (one)
        device::atomic_xor(job, reinterpret_cast<std::uint32_t*>(to),
                           static_cast<std::uint32_t>(step.value), step.pe);
      break;
    case RmaStep::atomic_or:
      if (one)
        device::atomic_fetch_or(job, reinterpret_cast<std::uint64_t*>(to), step.value, step.pe);
      break;
    case RmaStep::atomic_and:
      if (one)
        device::atomic_and(job, reinterpret_cast<std::uint64_t*>(to), step.value, step.pe);
      break;
    case RmaStep::own_atomic:
      if (one)
        run_own_atomic(job, step);
      ok = device::quiet<Scope>(job);
      break;
    case RmaStep::atomic_swap:
      if (one)
        device::atomic_swap(job, reinterpret_cast<std::uint64_t*>(to), step.value, step.pe);
      break;
    case RmaStep::fence:
      ok = device::fence<Scope>(job);
      break;
    default:
      ok = device::barrier_all<Scope>(job);
      break;
    }
    if (!ok)
      return false;
  }
  return device::quiet<Scope>(job);
}

} // namespace shmemctl::test
