#include "kernels/word_atomic.h"

#include "kernels/cuda_error.h"

#define SHMEMCTL_DEVICE_WITHOUT_NETWORK // this GPU can access the word by loads and stores
#include "kernels/device/word_atomic.cuh"

namespace shmemctl {

namespace {

__global__ void word_atomic(void* word, AtomicOp op, unsigned size_bytes, std::uint64_t operand,
                            std::uint64_t compare, std::uint64_t* old) {
  *old = device::word_atomic(word, op, size_bytes, operand, compare);
}

} // namespace

std::string launch_word_atomic(void* stream, void* word, AtomicOp op, unsigned size_bytes,
                               std::uint64_t operand, std::uint64_t compare, std::uint64_t* old) {
  word_atomic<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(word, op, size_bytes, operand,
                                                              compare, old);
  return cuda_error_text(cudaGetLastError());
}

} // namespace shmemctl
