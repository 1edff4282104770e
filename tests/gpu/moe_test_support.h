// What the tests of dispatch and combine on GPUs have in common.
#pragma once

#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <unistd.h>

#include "src/moe/shape.h"
#include "tests/gpu/moe_world.h"

namespace shmemctl::test {

inline bool has_gpu() {
  // Else a kernel that waits may keep another one from being loaded.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

inline moe::Shape shape_of(std::int32_t n_ranks, std::int32_t n_experts, std::int32_t top_k,
                           std::int32_t hidden, std::int32_t max_tokens) {
  moe::Shape shape;
  shape.n_ranks = n_ranks;
  shape.n_experts = n_experts;
  shape.top_k = top_k;
  shape.hidden = hidden;
  shape.max_tokens = max_tokens;
  return shape;
}

inline void must(const std::string& wrong, const std::string& where) {
  if (!wrong.empty())
    throw std::runtime_error(where + ": " + wrong);
}
/// So that ranks come at different times.
inline void dawdle(std::mt19937& random) {
  usleep(static_cast<useconds_t>(random() % 300));
}

} // namespace shmemctl::test
