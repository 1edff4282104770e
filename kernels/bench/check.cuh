// Common code of the kernels that make data and check it.
#pragma once

#include "kernels/bench/check.h"
#include "kernels/bench/timed_region.cuh"

namespace shmemctl::bench {

struct FillArguments {
  std::uint64_t* words;
  std::uint64_t count, seed;
  int pe;
};
struct FillBody {
  static __device__ void run(const DeviceJob&, KernelControl*, const FillArguments& a) {
    for (std::uint64_t i = OfThread::caller(); i < a.count; i += OfThread::callers())
      a.words[i] = pattern_word(a.seed, a.pe, i);
  }
};

struct CheckArguments {
  const std::byte* area;
  PatternSlots slots;
};
struct CheckBody {
  static __device__ void run(const DeviceJob& job, KernelControl* control,
                             const CheckArguments& a) {
    TimedRegion region(job, control);
    if (OfThread::caller() == 0)
      store_relaxed(&control->wrong_at, UINT64_MAX);
    if (!region.sync_grid())
      return;
    const std::uint64_t size_bytes = a.slots.slots * a.slots.slot_bytes;
    for (std::uint64_t at = OfThread::caller(); at < size_bytes; at += OfThread::callers())
      if (static_cast<std::uint8_t>(a.area[at]) != a.slots.expected(at)) {
        note(&control->wrong_at, at);
        break; // later bytes of this thread come after this one
      }
    if (!region.sync_grid() || OfThread::caller() != 0)
      return;
    const std::uint64_t first = load_acquire(&control->wrong_at);
    if (first == UINT64_MAX)
      return;
    control->expected = a.slots.expected(first);
    control->found = static_cast<std::uint8_t>(a.area[first]);
  }

private:
  /// Lowers `smallest` to `value` if that is smaller.
  static __device__ void note(std::uint64_t* smallest, std::uint64_t value) {
    std::uint64_t seen = load_relaxed(smallest);
    while (value < seen) {
      const std::uint64_t before = atomic_word_compare_swap(smallest, seen, value);
      if (before == seen)
        return;
      seen = before;
    }
  }
};

struct Nothing {};
struct TimerStepBody {
  static __device__ void run(const DeviceJob&, KernelControl* control, const Nothing&) {
    constexpr int readings = 4096;
    std::uint64_t smallest = UINT64_MAX, last = global_time_ns();
    for (int i = 0; i < readings; ++i) {
      const std::uint64_t now = global_time_ns();
      if (now > last && now - last < smallest)
        smallest = now - last;
      last = now;
    }
    control->step_ns = smallest;
  }
};
struct EmptyBody {
  static __device__ void run(const DeviceJob& job, KernelControl* control, const Nothing&) {
    TimedRegion region(job, control);
    if (region.begin())
      region.end();
  }
};

} // namespace shmemctl::bench
