// The device code of ping-pong kernels.
#pragma once

#include "kernels/bench/pattern.h"
#include "kernels/bench/pingpong.h"
#include "kernels/bench/timed_region.cuh"

namespace shmemctl::bench {

/// One end of a ping-pong, played by the threads of a scope.
template <class Scope>
class End {
public:
  __device__ End(const DeviceJob& job, const PingPongArguments& a)
      : job_(job), a_(a), flag_(reinterpret_cast<std::uint64_t*>(a.memory + a.flag_offset_bytes)) {}

  __device__ void send(std::uint64_t number) const {
    const std::uint64_t value = number + 1;
    std::byte* const slot = a_.memory + a_.slot_offset_bytes;
    std::byte* const source = a_.memory + number % variants * variant_step_bytes;
    switch (a_.kernel) {
    case PingPongKernel::signal:
      if (Scope::rank() == 0)
        signal_set(job_, flag_, value, a_.peer);
      break;
    case PingPongKernel::store: // a bare store through the mapping
      if (Scope::rank() == 0)
        store_relaxed(pointer_to(job_, flag_, a_.peer), value);
      break;
    case PingPongKernel::put_signal:
      put_signal_nbi<typename Scope::Api>(job_, slot, source, a_.size_bytes, flag_, value, a_.peer);
      break;
    case PingPongKernel::put:
      if (a_.payload_is_flag)
        return put_number(value);
      put_nbi<typename Scope::Api>(job_, slot, source, a_.size_bytes, a_.peer);
      fence<typename Scope::Api>(job_);
      if (Scope::rank() == 0)
        signal_set(job_, flag_, value, a_.peer);
      break;
    }
  }

  __device__ bool await(std::uint64_t number) const {
    bool ok = true;
    if (Scope::rank() == 0)
      ok = wait_masked(job_, flag_, a_.flag_mask, (number + 1) & a_.flag_mask, a_.peer);
    return Scope::all(ok);
  }

private:
  /// Puts `value` to the peer's flag. The source is the word after this PE's own flag.
  __device__ void put_number(std::uint64_t value) const {
    std::uint64_t* const word = flag_ + 1;
    if (Scope::rank() == 0)
      *word = value;
    Scope::sync();
    put<typename Scope::Api>(job_, flag_, word, a_.size_bytes, a_.peer);
    Scope::sync();
  }

  const DeviceJob& job_;
  const PingPongArguments& a_;
  std::uint64_t* flag_;
};

template <class Scope>
__device__ bool play(const DeviceJob& job, const PingPongArguments& a) {
  const End<Scope> end(job, a);
  const bool asks = a.role == PingPongRole::asks;
  for (std::uint64_t number = a.first; number < a.first + a.count; ++number) {
    if (asks)
      end.send(number);
    if (!end.await(number))
      return false;
    if (!asks)
      end.send(number);
  }
  return true;
}

template <class Scope>
struct PingPongBody {
  static __device__ void run(const DeviceJob& job, KernelControl* control,
                             const PingPongArguments& a) {
    TimedRegion region(job, control);
    if (region.begin())
      region.end(a.role == PingPongRole::none || play<Scope>(job, a));
  }
};

} // namespace shmemctl::bench
