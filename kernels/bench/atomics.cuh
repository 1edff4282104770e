// The bodies of the kernels of atomics.
#pragma once

#include "kernels/bench/atomics.h"
#include "kernels/bench/timed_region.cuh"

namespace shmemctl::bench {

template <class Word>
__device__ Word execute(const DeviceJob& job, AtomicKernel kernel, Word* word, std::uint64_t number,
                        int pe) {
  const auto operand = static_cast<Word>(atomic_operand(kernel, number));
  switch (kernel) {
  case AtomicKernel::fetch:
    return atomic_fetch(job, word, pe);
  case AtomicKernel::set:
    atomic_set(job, word, operand, pe);
    return 0;
  case AtomicKernel::swap:
    return atomic_swap(job, word, operand, pe);
  case AtomicKernel::compare_swap:
    return atomic_compare_swap(job, word, static_cast<Word>(atomic_after(kernel, number)), operand,
                               pe);
  case AtomicKernel::fetch_add:
    return atomic_fetch_add(job, word, operand, pe);
  case AtomicKernel::add:
    atomic_add(job, word, operand, pe);
    return 0;
  }
  return 0;
}

template <AtomicKernel kernel, class Word>
__device__ bool repeat(const DeviceJob& job, KernelControl* control, const AtomicArguments& a) {
  auto* const word = reinterpret_cast<Word*>(a.words);
  for (std::uint64_t number = a.first; number < a.first + a.count; ++number) {
    const Word found = execute(job, kernel, word, number, a.peer);
    if (!atomic_fetches(kernel)) {
      if (!quiet<Thread>(job))
        return false;
      continue;
    }
    const auto expected = static_cast<Word>(atomic_after(kernel, number));
    if (found != expected && control->wrong_at == UINT64_MAX) {
      control->wrong_at = number;
      control->expected = expected;
      control->found = found;
    }
  }
  return true;
}
/// Chooses the operation once, before the loop: in the loop, the branches would take a fifth of the
/// time.
template <class Word>
__device__ bool one_by_one(const DeviceJob& job, KernelControl* control, const AtomicArguments& a) {
  switch (a.kernel) {
  case AtomicKernel::fetch:
    return repeat<AtomicKernel::fetch, Word>(job, control, a);
  case AtomicKernel::set:
    return repeat<AtomicKernel::set, Word>(job, control, a);
  case AtomicKernel::swap:
    return repeat<AtomicKernel::swap, Word>(job, control, a);
  case AtomicKernel::compare_swap:
    return repeat<AtomicKernel::compare_swap, Word>(job, control, a);
  case AtomicKernel::fetch_add:
    return repeat<AtomicKernel::fetch_add, Word>(job, control, a);
  case AtomicKernel::add:
    return repeat<AtomicKernel::add, Word>(job, control, a);
  }
  return false;
}

template <class Word>
struct AtomicLatencyBody {
  static __device__ void run(const DeviceJob& job, KernelControl* control,
                             const AtomicArguments& a) {
    TimedRegion region(job, control);
    if (Block::rank() == 0)
      control->wrong_at = UINT64_MAX;
    if (region.begin())
      region.end(a.peer < 0 || Block::rank() > 0 || one_by_one<Word>(job, control, a));
  }
};

template <class Word>
struct AtomicRateBody {
  static __device__ void run(const DeviceJob& job, KernelControl* control,
                             const AtomicArguments& a) {
    TimedRegion region(job, control);
    if (!region.begin())
      return;
    if (a.peer >= 0) {
      Word* const word = reinterpret_cast<Word*>(a.words) + OfThread::caller();
      const auto operand = static_cast<Word>(atomic_operand(AtomicKernel::add, 0));
      for (std::uint64_t i = 0; i < a.count; ++i)
        atomic_add(job, word, operand, a.peer);
    }
    region.end();
  }
};

struct AtomicBandwidthBody {
  static __device__ void run(const DeviceJob& job, KernelControl* control,
                             const AtomicArguments& a) {
    TimedRegion region(job, control);
    if (!region.begin())
      return;
    if (a.peer >= 0) {
      auto* const words = reinterpret_cast<std::uint64_t*>(a.words);
      const std::uint64_t operand = atomic_operand(AtomicKernel::add, 0);
      for (std::uint64_t i = 0; i < a.count; ++i)
        for (std::uint64_t word = OfThread::caller(); word < a.n_words; word += OfThread::callers())
          atomic_add(job, words + word, operand, a.peer);
    }
    region.end();
  }
};

} // namespace shmemctl::bench
