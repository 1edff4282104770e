#include "kernels/word_atomic.h"

namespace shmemctl {

namespace {

template <class Word>
__device__ Word apply(Word* word, AtomicOp op, Word operand, Word compare) {
  switch (op) {
  case AtomicOp::fetch:
    return atomicAdd_system(word, Word{0});
  case AtomicOp::set:
  case AtomicOp::swap:
    return atomicExch_system(word, operand);
  case AtomicOp::compare_swap:
    return atomicCAS_system(word, compare, operand);
  case AtomicOp::add:
    return atomicAdd_system(word, operand);
  case AtomicOp::bit_and:
    return atomicAnd_system(word, operand);
  case AtomicOp::bit_or:
    return atomicOr_system(word, operand);
  case AtomicOp::bit_xor:
    return atomicXor_system(word, operand);
  }
  return 0;
}

__global__ void word_atomic(void* word, AtomicOp op, unsigned size_bytes,
                            unsigned long long operand, unsigned long long compare,
                            unsigned long long* old) {
  __threadfence_system();
  if (size_bytes == 4)
    *old = apply(static_cast<unsigned*>(word), op, static_cast<unsigned>(operand),
                 static_cast<unsigned>(compare));
  else
    *old = apply(static_cast<unsigned long long*>(word), op, operand, compare);
  __threadfence_system();
}

} // namespace

std::string launch_word_atomic(void* stream, void* word, AtomicOp op, unsigned size_bytes,
                               std::uint64_t operand, std::uint64_t compare, std::uint64_t* old) {
  word_atomic<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(
      word, op, size_bytes, operand, compare, reinterpret_cast<unsigned long long*>(old));
  const cudaError_t result = cudaGetLastError();
  return result == cudaSuccess ? "" : cudaGetErrorString(result);
}

} // namespace shmemctl
