// The threads that make a call together: one thread, a warp, or a block. All of them make the call
// with the same arguments. Blocks and grids may have up to three dimensions; in a Warp, all 32
// threads make the call.
#pragma once

#include <cstdint>

namespace shmemctl::device {

/// Each scope has: rank() of the calling thread and size(); converge(), which reconverges a warp
/// (needed after code of a single thread right before a sync of the block: ptxas 13.0 leaves it to
/// that barrier, and synccheck reports a divergent warp); sync(), after which every thread sees
/// what the others did before it; all(flag), a sync that returns whether all threads passed true;
/// broadcast(value), a sync that returns rank 0's value.
struct Thread {
  static __device__ int rank() { return 0; }
  static __device__ int size() { return 1; }
  static __device__ void converge() {}
  static __device__ void sync() {}
  static __device__ bool all(bool flag) { return flag; }
  static __device__ std::uint64_t broadcast(std::uint64_t value) { return value; }
};

/// All blocks of a launch, in up to three dimensions, by linear index.
struct Grid {
  static __device__ int rank() {
    return static_cast<int>(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
  }
  static __device__ int size() { return static_cast<int>(gridDim.x * gridDim.y * gridDim.z); }
  /// A number that is unique to this launch in the context.
  static __device__ std::uint64_t launch() {
    std::uint64_t number;
    asm("mov.u64 %0, %%gridid;" : "=l"(number));
    return number;
  }
};

struct Warp {
  static __device__ int rank() { return static_cast<int>(linear() % 32); }
  static __device__ int size() { return 32; }
  static __device__ void converge() { __syncwarp(); }
  static __device__ void sync() { __syncwarp(); }
  static __device__ bool all(bool flag) {
    const bool result = __all_sync(everybody, flag) != 0;
    __syncwarp(); // a vote orders no memory
    return result;
  }
  static __device__ std::uint64_t broadcast(std::uint64_t value) {
    const auto result = static_cast<std::uint64_t>(
        __shfl_sync(everybody, static_cast<unsigned long long>(value), 0));
    __syncwarp();
    return result;
  }

private:
  static constexpr unsigned everybody = 0xffffffffu;
  static __device__ unsigned linear() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
};

struct Block {
  static __device__ int rank() {
    return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
  }
  static __device__ int size() { return static_cast<int>(blockDim.x * blockDim.y * blockDim.z); }
  static __device__ void converge() { __syncwarp(); }
  static __device__ void sync() { __syncthreads(); }
  static __device__ bool all(bool flag) { return __syncthreads_and(flag ? 1 : 0) != 0; }
  static __device__ std::uint64_t broadcast(std::uint64_t value) {
    __shared__ std::uint64_t shared;
    __syncthreads(); // the previous broadcast has been read
    if (rank() == 0)
      shared = value;
    __syncthreads();
    return shared;
  }
};

} // namespace shmemctl::device
