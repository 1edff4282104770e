// Who takes part in a call: one thread, a warp, or a block. All of them make the call, with the
// same arguments.
#pragma once

namespace shmemctl::device {

struct Thread {
  static __device__ int rank() { return 0; }
  static __device__ int size() { return 1; }
  static __device__ void sync() {}
};

struct Warp {
  static __device__ int rank() { return static_cast<int>(linear() % 32); }
  static __device__ int size() { return 32; }
  static __device__ void sync() { __syncwarp(); }

private:
  static __device__ unsigned linear() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
};

struct Block {
  static __device__ int rank() {
    return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
  }
  static __device__ int size() { return static_cast<int>(blockDim.x * blockDim.y * blockDim.z); }
  static __device__ void sync() { __syncthreads(); }
};

} // namespace shmemctl::device
