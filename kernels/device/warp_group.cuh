// Threads of a warp that post together: see Alone in src/abi/post_wqe.h.
#pragma once

#include <cstdint>

namespace shmemctl::device {

class WarpGroup {
public:
  /// The threads of the warp that are converged here and have the same key. Threads that arrive
  /// later are not included.
  static __device__ WarpGroup of(std::uint64_t key) {
    const unsigned here = __activemask();
    return WarpGroup(__match_any_sync(here, static_cast<unsigned long long>(key)));
  }

  __device__ std::uint32_t rank() const { return count(mask_ & below_me()); }
  __device__ std::uint32_t size() const { return count(mask_); }
  __device__ std::uint64_t from_leader(std::uint64_t value) const {
    return __shfl_sync(mask_, static_cast<unsigned long long>(value),
                       __ffs(static_cast<int>(mask_)) - 1);
  }
  __device__ std::int32_t last_with(bool flag) const {
    const unsigned votes = __ballot_sync(mask_, flag);
    if (votes == 0)
      return -1;
    const unsigned last = 1u << (31 - __clz(static_cast<int>(votes)));
    return static_cast<std::int32_t>(count(mask_ & (last - 1)));
  }
  __device__ void sync() const { __syncwarp(mask_); }

private:
  explicit __device__ WarpGroup(unsigned mask) : mask_(mask) {}
  static __device__ std::uint32_t count(unsigned mask) {
    return static_cast<std::uint32_t>(__popc(mask));
  }
  static __device__ unsigned below_me() {
    unsigned mask;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    return mask;
  }

  unsigned mask_;
};

} // namespace shmemctl::device
